import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { librarySources, lineOf, nodesOf, parsed } from '../helpers/library-sources.js';
import type { LibrarySource } from '../helpers/library-sources.js';

// Everything that differs from run to run comes in through one file, so that a simulation of the library can replace it.
const MAY_TOUCH: readonly string[] = [
  'time-and-randomness.ts',
  // A package of its own one day. Its clock is a parameter of the store.
  'memory/memory.store.ts',
];

const TIMERS = ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'];
const MODULES = ['timers', 'timers/promises', 'perf_hooks'];
/** By what they are read of: `Date.now`, `process.hrtime`. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Date: ['now'],
  Math: ['random'],
  process: ['hrtime', 'uptime'],
  AbortSignal: ['timeout'],
};
const GLOBALS = ['performance', 'crypto', 'scheduler', ...TIMERS];
/** What one key, digest or comparison always answers alike. */
const PURE_CRYPTO = ['createHash', 'createHmac', 'timingSafeEqual'];

const withoutScheme = (module: string) => module.replace(/^node:/, '');

function touched(source: LibrarySource): string[] {
  const imported = importedNames(source);
  const found = new Set<string>();
  for (const node of nodesOf(source.tree)) {
    const what = importOf(node) ?? memberOf(node) ?? clockOf(node) ?? globalOf(node, imported);
    if (what !== undefined) found.add(`${source.path}:${lineOf(source, node)} ${what}`);
  }
  return [...found];
}

function importedNames({ tree }: LibrarySource): ReadonlySet<string> {
  const specifiers = [...nodesOf(tree)].filter((node) => ts.isImportSpecifier(node));
  return new Set(specifiers.map(({ name }) => name.text));
}

/** `import ... from 'node:timers'`, `export ... from`, `import('node:timers')`, `require('node:timers')`. */
function importOf(node: ts.Node): string | undefined {
  const target =
    ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
      ? node.moduleSpecifier
      : ts.isCallExpression(node)
        ? node.arguments[0]
        : undefined;
  if (!target || !ts.isStringLiteral(target)) return undefined;
  const module = withoutScheme(target.text);
  if (MODULES.includes(module)) return module;
  if (module !== 'crypto') return undefined;
  if (ts.isImportDeclaration(node)) {
    const names = node.importClause?.namedBindings;
    if (node.importClause?.isTypeOnly) return undefined;
    if (names && ts.isNamedImports(names)) {
      const impure = names.elements.map(({ name, propertyName }) => (propertyName ?? name).getText());
      return impure.find((name) => !PURE_CRYPTO.includes(name));
    }
  }
  return 'all of crypto';
}

function memberOf(node: ts.Node): string | undefined {
  if (!ts.isPropertyAccessExpression(node) && !ts.isElementAccessExpression(node)) return undefined;
  const owner = node.expression.getText();
  const member = ts.isPropertyAccessExpression(node)
    ? node.name.text
    : ts.isStringLiteral(node.argumentExpression)
      ? node.argumentExpression.text
      : '';
  if (owner === 'globalThis' || owner === 'global') {
    return [...GLOBALS, ...Object.keys(MEMBERS)].includes(member) ? `${owner}.${member}` : undefined;
  }
  return Object.hasOwn(MEMBERS, owner) && MEMBERS[owner]!.includes(member) ? `${owner}.${member}` : undefined;
}

/** `new Date()` and `Date()` read the clock; with arguments they do not. */
function clockOf(node: ts.Node): string | undefined {
  const isMade = ts.isNewExpression(node) && (node.arguments?.length ?? 0) === 0;
  const isCalled = ts.isCallExpression(node);
  return (isMade || isCalled) && node.expression.getText() === 'Date' ? node.getText() : undefined;
}

/** A global one by its bare name, where the file imports nothing of that name. */
function globalOf(node: ts.Node, imported: ReadonlySet<string>): string | undefined {
  if (!ts.isIdentifier(node) || !GLOBALS.includes(node.text) || imported.has(node.text)) return undefined;
  const { parent } = node;
  const isMember = ts.isPropertyAccessExpression(parent) && parent.name === node;
  const isType = ts.isQualifiedName(parent) || ts.isTypeReferenceNode(parent) || ts.isTypeQueryNode(parent);
  const declares = (ts.isPropertyAssignment(parent) || ts.isImportSpecifier(parent)) && parent.name === node;
  return isMember || isType || declares ? undefined : node.text;
}

describe('time and randomness', () => {
  it('come into the library through one file', () => {
    // The page of the dashboard runs in a browser, with the clocks of that.
    const others = librarySources().filter(
      ({ path }) => !MAY_TOUCH.includes(path) && !path.startsWith('dashboard/page/'),
    );
    expect(others.flatMap(touched)).toEqual([]);
  });

  it('are touched by the files that may', () => {
    const idle = librarySources().filter((source) => MAY_TOUCH.includes(source.path) && touched(source).length === 0);
    expect(idle).toEqual([]);
  });

  it.each([
    'Date.now()',
    "Date['now']()",
    'const now = Date.now;',
    'new Date()',
    'new Date',
    'Date()',
    'Math.random()',
    'const { random } = { random: Math.random };',
    'setTimeout(run, 5)',
    'globalThis.setTimeout(run, 5)',
    'const timers = { setImmediate };',
    'AbortSignal.timeout(5)',
    'process.hrtime.bigint()',
    'performance.now()',
    'crypto.randomUUID()',
    "import { setTimeout } from 'node:timers/promises';",
    "import { randomBytes } from 'node:crypto';",
    "import { createHash, randomInt as draw } from 'crypto';",
    "import crypto from 'node:crypto';",
    "const { performance } = await import('node:perf_hooks');",
  ])('are seen in %s', (line) => {
    expect(touched(parsed('x.ts', line))).not.toEqual([]);
  });

  it.each([
    'new Date(5)',
    'const timer: NodeJS.Timeout | undefined = undefined;',
    "import { createHash } from 'node:crypto';",
    "import { setTimeout } from '../time-and-randomness.js'; setTimeout(run, 5);",
    'hooks.setTimeout(run, 5)',
    '// Date.now()',
  ])('are not seen in %s', (line) => {
    expect(touched(parsed('x.ts', line))).toEqual([]);
  });
});
