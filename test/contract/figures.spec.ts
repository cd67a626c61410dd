import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { KEY_NAMES } from '../../lib/redis/keys.js';
import { importCircles } from '../helpers/import-circles.js';
import { libraryFiles, librarySources, linesOf, nodesOf, parsed } from '../helpers/library-sources.js';
import { luaFunctions } from '../helpers/lua-functions.js';

// The figures that keep the library readable. There are no exceptions.

const MOST_LINES = { file: 400, function: 60, class: 300 };
const MOST_OF_THE_WAY = { files: 17, lines: 3_125 };

/** Words of this project's own making, for which the field has others (docs/glossary.md). */
const COINED = [
  /\bsuspects?\b/i,
  /\bcompany\b/i,
  /\bsolo(?:[ -]?turns?|Turn|Want)?\b/i,
  /\bvolunteer/i,
  /\b(?:run|lease)[ -]?books?\b/i,
  /\bnext[ -]?looks?\b/i,
  /\bleaveAlone\b/,
  /\blanes?\b/i,
  /\boverruled\b/i,
  /\bunhold\b/i,
];
/** Names in code that said less than a word of the field does. In a sentence they are English. */
const VAGUE_NAMES = {
  ts: ['told', 'Told', 'beside', 'company', 'suspect'],
  lua: ['told', 'beside', 'rest', 'company'],
};
/** As names of keys they said nothing of what is in them. */
const VAGUE_KEYS = ['suspects', 'done', 'first', 'next', 'rest', 'lane'];
type Figures = Readonly<Record<string, number>>;

const sources = librarySources();
const textLines = (path: string) => readFileSync(join('lib', path), 'utf8').split('\n').length - 1;

/** What has more lines than that. */
function over(most: number, found: Figures): string[] {
  return Object.entries(found)
    .filter(([, lines]) => lines > most)
    .map(([name, lines]) => `${name}: ${lines}`);
}

/** Functions and methods by name; of several with one name in a file the largest. */
function functionsOf(all: typeof sources): Figures {
  return largest(all, (node) => ts.isFunctionLike(node) && 'body' in node && node.body !== undefined);
}

function largest(all: typeof sources, is: (node: ts.Node) => boolean): Figures {
  const found: Record<string, number> = {};
  for (const source of all) {
    for (const node of nodesOf(source.tree)) {
      if (!is(node)) continue;
      const name = `${source.path} ${(node as ts.NamedDeclaration).name?.getText() ?? 'without a name'}`;
      found[name] = Math.max(found[name] ?? 0, linesOf(source, node));
    }
  }
  return found;
}

function luaFunctionsOf(paths: readonly string[]): Figures {
  const all = paths.flatMap((path) =>
    luaFunctions(readFileSync(join('lib', path), 'utf8')).map(({ name, lines }) => [`${path} ${name}`, lines]),
  );
  return Object.fromEntries(all) as Figures;
}

describe('the figures of the library', () => {
  it(`no file has more than ${MOST_LINES.file} lines`, () => {
    const files = libraryFiles(/\.(?:tsx?|mjs|css|lua)$/).map((path) => [path, textLines(path)]);
    expect(over(MOST_LINES.file, Object.fromEntries(files) as Figures)).toEqual([]);
  });

  it(`no function has more than ${MOST_LINES.function} lines`, () => {
    expect(over(MOST_LINES.function, functionsOf(sources))).toEqual([]);
  });

  it(`no function of a script has more than ${MOST_LINES.function} lines`, () => {
    expect(over(MOST_LINES.function, luaFunctionsOf(libraryFiles(/\.lua$/)))).toEqual([]);
  });

  it(`no class has more than ${MOST_LINES.class} lines`, () => {
    expect(over(MOST_LINES.class, largest(sources, ts.isClassLike))).toEqual([]);
  });

  it('no files import each other in a circle, types included', () => {
    expect(importCircles(sources)).toEqual([]);
  });

  it(`the way of one job has at most ${MOST_OF_THE_WAY.files} files and ${MOST_OF_THE_WAY.lines} lines`, () => {
    const way = wayOfOneJob();
    expect(way.length).toBeGreaterThan(12);
    expect(way.length).toBeLessThanOrEqual(MOST_OF_THE_WAY.files);
    expect(way.map(textLines).reduce((sum, of) => sum + of)).toBeLessThanOrEqual(MOST_OF_THE_WAY.lines);
  });
});

/** The table in docs/architecture.md, below lib. */
function wayOfOneJob(): string[] {
  const text = readFileSync('docs/architecture.md', 'utf8');
  const section = text.split(/^## /m).find((part) => part.startsWith('The way of one job\n'))!;
  return [...section.matchAll(/\]\(\.\.\/lib\/([^)]+)\)/g)].map(([, path]) => path!);
}

describe('coined words', () => {
  const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.md'));
  const files = [
    ...libraryFiles(/\.(?:ts|mjs|lua)$/).map((path) => join('lib', path)),
    ...docs.map((path) => join('docs', path)),
    'README.md',
    'CHANGELOG.md',
  ];

  it('stand nowhere in the library and its docs', () => {
    const left = files.filter((path) => {
      const text = readFileSync(path, 'utf8');
      return COINED.some((word) => word.test(text));
    });
    expect(left).toEqual([]);
  });

  it('are no names in the code', () => {
    const inTypeScript = sources.flatMap(({ path, tree }) =>
      [...nodesOf(tree)]
        .filter((node) => ts.isIdentifier(node) || ts.isPrivateIdentifier(node))
        .filter(({ text }) => VAGUE_NAMES.ts.includes(text.replace('#', '')))
        .map(({ text }) => `${path} ${text}`),
    );
    const inLua = libraryFiles(/\.lua$/).flatMap((path) => {
      const code = readFileSync(join('lib', path), 'utf8').replaceAll(/--[^\n]*|'[^'\n]*'|"[^"\n]*"/g, '');
      return VAGUE_NAMES.lua.filter((name) => new RegExp(`\\b${name}\\b`).test(code)).map((name) => `${path} ${name}`);
    });
    expect([...inTypeScript, ...inLua]).toEqual([]);
  });

  it('are no names of keys', () => {
    expect(KEY_NAMES.filter((name) => VAGUE_KEYS.includes(name))).toEqual([]);
  });
});

describe('the figures are counted', () => {
  it('of functions, methods and classes', () => {
    const source = parsed('x.ts', 'class A {\n  // one\n  b() {\n    return () => {\n    };\n  }\n}\nfunction c() {}');
    expect(functionsOf([source])).toEqual({ 'x.ts b': 4, 'x.ts without a name': 2, 'x.ts c': 1 });
    expect(largest([source], ts.isClassLike)).toEqual({ 'x.ts A': 7 });
  });

  it('of functions in Lua', () => {
    const source = `local function a(x)
  -- end of "it
  if x then return 'end' end
  for i = 1, 2 do repeat x = f(function() return [[end]] end) until x end
  while x do
  end
end
b = function() end`;
    expect(luaFunctions(source)).toEqual([
      { name: 'function', lines: 1 },
      { name: 'a', lines: 7 },
      { name: 'function', lines: 1 },
    ]);
    expect(() => luaFunctions('if x then')).toThrow('not closed');
    expect(() => luaFunctions('end')).toThrow('closes nothing');
  });

  it('of files that import each other', () => {
    const files = [
      parsed('a.ts', "import type { B } from './b/b.js';"),
      parsed('b/b.ts', "export * from '../c.js';"),
      parsed('c.ts', "const a = () => import('./a.js');"),
      parsed('d.ts', "import './a.js';"),
    ];
    expect(importCircles(files)).toEqual([['a.ts', 'b/b.ts', 'c.ts']]);
  });

  it('against their limit', () => {
    expect(over(10, { a: 5, b: 12, c: 10 })).toEqual(['b: 12']);
  });
});
