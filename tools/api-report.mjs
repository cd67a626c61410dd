// npm run generate:api: what each public entry exports, as text in test/contract/api. `--check` only tells what has changed, as lines.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { readArguments } from './arguments.mjs';
import { at } from './project.mjs';

const FOLDER = at('test', 'contract', 'api');
const OURS = at('dist', 'cjs');
const NOTE = `What this entry exports, without comments. Written by \`npm run generate:api\` from the declarations of the build.`;

const { values } = readArguments(
  `Usage: npm run generate:api               writes what each entry of the built package exports into test/contract/api
       npm run generate:api -- --check    tells what differs from that, and changes nothing`,
  { options: { check: { type: 'boolean', default: false } } },
);

const printer = ts.createPrinter({ removeComments: true });
const reports = reportsOfEntries();
if (values.check) {
  const lines = changedLines(reports);
  if (lines.length > 0) console.log(lines.join('\n'));
  process.exitCode = lines.length > 0 ? 1 : 0;
} else {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, text] of reports) writeFileSync(join(FOLDER, name), text);
}

/** @returns {Map<string, string>} by name of file */
function reportsOfEntries() {
  const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const entries = Object.entries(exports).filter(([, entry]) => entry.require);
  const files = entries.map(([, { require: one }]) => at(one.types));
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    strict: true,
    noEmit: true,
    types: ['node', 'jest'],
  });
  refuseMistakes(program);
  const checker = program.getTypeChecker();
  // The root is the first one. What it shows the others do not repeat.
  const shown = new Set();
  return new Map(
    entries.map(([path], index) => [
      `${path === '.' ? 'index' : path.slice(2).replaceAll('/', '-')}.txt`,
      reportOf(program.getSourceFile(files[index]), checker, path === '.' ? shown : new Set(shown)),
    ]),
  );
}

/** For users who let their compiler check also the declarations of packages. */
function refuseMistakes(program) {
  const ours = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(OURS));
  const mistakes = ours.flatMap((source) =>
    [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) => `${source.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    ),
  );
  if (mistakes.length === 0) return;
  console.error(mistakes.join('\n'));
  process.exit(1);
}

function reportOf(source, checker, shown) {
  const module = checker.getSymbolAtLocation(source);
  // Types that a test framework gets more members of have no exports.
  if (!module) return `${NOTE}\n\n${source.statements.map((one) => printed(one)).join('\n\n')}\n`;
  const exported = checker
    .getExportsOfModule(module)
    .map((symbol) => ({ name: symbol.name, symbol: unaliased(symbol, checker) }))
    .toSorted(byName);
  const hidden = [];
  for (const { symbol } of exported) shown.add(symbol);
  for (const { symbol } of exported) collectHidden(symbol, shown, hidden, checker);
  const behind = hidden.map((symbol) => ({ name: symbol.name, symbol })).toSorted(byName);
  return (
    [
      NOTE,
      ...exported.map(textOf),
      ...(behind.length > 0 ? ['Not exported, but in the types above:'] : []),
      ...behind.map(textOf),
      '',
    ]
      .join('\n\n')
      .trimEnd() + '\n'
  );
}

function byName(one, other) {
  return one.name < other.name ? -1 : 1;
}

function unaliased(symbol, checker) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function textOf({ name, symbol }) {
  const texts = declarationsOf(symbol).map((node) => {
    const statement = ts.isVariableDeclaration(node) ? node.parent.parent : node;
    return `${isDeprecated(statement) ? '@deprecated\n' : ''}${printed(statement)}`;
  });
  return `${symbol.name === name ? '' : `${name} is\n`}${texts.join('\n')}`;
}

function printed(node) {
  return printer
    .printNode(ts.EmitHint.Unspecified, node, node.getSourceFile())
    .split('\n')
    .filter((line) => !/^\s*(?:private|#)/.test(line))
    .join('\n')
    .replaceAll(/^export (?:declare )?|^declare /gm, '');
}

function isDeprecated(node) {
  return ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'deprecated');
}

function declarationsOf(symbol) {
  return (symbol.declarations ?? []).filter((node) => node.getSourceFile().fileName.startsWith(OURS));
}

/** Types of ours that an exported one speaks of; not those of constructors, which are called by Nest. */
function collectHidden(symbol, known, hidden, checker) {
  const visit = (node) => {
    if (ts.isConstructorDeclaration(node)) return;
    if (ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword))
      return;
    const named = ts.isTypeReferenceNode(node)
      ? node.typeName
      : ts.isExpressionWithTypeArguments(node) && node.expression;
    const found = named && checker.getSymbolAtLocation(named);
    const target = found && unaliased(found, checker);
    const isType =
      target && target.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias | ts.SymbolFlags.Class);
    if (isType && !known.has(target) && declarationsOf(target).length > 0) {
      known.add(target);
      hidden.push(target);
      collectHidden(target, known, hidden, checker);
    }
    ts.forEachChild(node, visit);
  };
  for (const node of declarationsOf(symbol)) visit(node);
}

/** Of each file the lines that went and came, enough to see what has changed. */
function changedLines(reports) {
  const names = new Set([...reports.keys(), ...readdirSync(FOLDER)]);
  return [...names].flatMap((name) => {
    const before = lines(known(name));
    const after = lines(reports.get(name));
    const gone = before.filter((line) => !after.includes(line)).map((line) => `- ${line}`);
    const come = after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`);
    const moved =
      gone.length + come.length === 0 && before.join('\n') !== after.join('\n') ? ['  the order of lines'] : [];
    return [...gone, ...come, ...moved].map((line, index) =>
      index === 0 ? `test/contract/api/${name}\n${line}` : line,
    );
  });
}

function known(name) {
  try {
    return readFileSync(join(FOLDER, name), 'utf8');
  } catch {
    return '';
  }
}

function lines(text = '') {
  return text.split('\n');
}
