// What the compiler of every consumer reads: of all declarations those that the public entries lead to, and no text of a script as a literal
// type. They stand beside the CommonJS build; those of the ESM build lead to them, because an ES module may import from CommonJS in every version
// of TypeScript, and CommonJS from an ES module in few.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';
import { at } from './project.mjs';

const MODULES = at('dist-modules', 'esm');
const AUGMENTS = /^declare module /m;
/** Of a constant or of a field; the names of states and the like are short. */
const LONG_LITERAL = /(?::| =) "(?:[^"\\]|\\.){400,}"/g;

export function writeDeclarations() {
  const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const entries = Object.values(exports).filter((entry) => entry.import);
  const sourceOf = ({ import: esm }) => at('dist-modules', 'esm', relative('dist/esm', esm.types));
  const texts = neededTexts(entries.map(sourceOf));
  for (const [file, text] of texts) write(at('dist', 'cjs', relative(MODULES, file)), text);
  for (const entry of entries) {
    const { import: esm, require: cjs } = entry;
    const text = texts.get(sourceOf(entry));
    // What it adds to another package must be said in the format in which that is imported: vitest has declarations of each.
    if (AUGMENTS.test(text)) write(at(esm.types), beside(text, relative(dirname(esm.types), dirname(cjs.types))));
    else {
      const target = relative(dirname(esm.types), cjs.types).replace(/\.d\.ts$/, '.js');
      write(at(esm.types), `export * from '${target}';\n`);
    }
  }
}

/** The same with the files that it imports in another folder. */
function beside(text, folder) {
  return text.replace(/ from '\.\//g, ` from '${folder}/`);
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text.replace(LONG_LITERAL, ': string'));
}

/** By file, its statements that the exports of these files speak of, with what they speak of in turn. */
function neededTexts(files) {
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    skipLibCheck: true,
    types: ['node'],
  });
  const checker = program.getTypeChecker();
  const needed = new Set();
  for (const file of files) {
    const source = program.getSourceFile(file);
    // What a test framework gets, and all that is exported.
    for (const statement of source.statements) if (!isLink(statement)) need(statement, checker, needed);
    const module = checker.getSymbolAtLocation(source);
    for (const symbol of module ? checker.getExportsOfModule(module) : []) needSymbol(symbol, checker, needed);
  }
  const used = new Set(files.map((file) => program.getSourceFile(file)));
  for (const statement of needed) used.add(statement.getSourceFile());
  // Files on the way that have nothing of their own, and only pass on what others export.
  for (const source of used) {
    const targets = source.statements.map((one) => targetOf(one, program)).filter((one) => one && !used.has(one));
    for (const one of targets)
      if (one.statements.some((link) => ts.isExportDeclaration(link) && link.moduleSpecifier)) used.add(one);
  }
  const left = { program, checker, used, needed };
  return new Map([...used].map((source) => [source.fileName, textOf(source, left)]));
}

function isLink(statement) {
  return ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
}

function needSymbol(symbol, checker, needed) {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  for (const node of target.declarations ?? []) {
    if (!node.getSourceFile().fileName.startsWith(MODULES)) continue;
    const statement = ts.findAncestor(node, ({ parent }) => parent && ts.isSourceFile(parent));
    if (statement && !isLink(statement)) need(statement, checker, needed);
  }
}

function need(statement, checker, needed) {
  if (needed.has(statement)) return;
  needed.add(statement);
  const visit = (node) => {
    if (ts.isIdentifier(node)) {
      const symbol = checker.getSymbolAtLocation(node);
      if (symbol) needSymbol(symbol, checker, needed);
    }
    ts.forEachChild(node, visit);
  };
  visit(statement);
}

/** The file that an import or export leads to, unless that is in another package. */
function targetOf(statement, program) {
  const { moduleSpecifier } = statement;
  if (!isLink(statement) || !moduleSpecifier?.text.startsWith('.')) return undefined;
  return program.getSourceFile(
    join(dirname(statement.getSourceFile().fileName), moduleSpecifier.text.replace(/\.js$/, '.d.ts')),
  );
}

function textOf(source, left) {
  const kept = source.statements.filter((statement) => left.needed.has(statement));
  const names = new Set();
  const collect = (node) => {
    if (ts.isIdentifier(node)) names.add(node.text);
    ts.forEachChild(node, collect);
  };
  kept.forEach(collect);
  const texts = source.statements.map((statement) => {
    if (!isLink(statement)) return left.needed.has(statement) ? statement.getFullText() : '';
    return linkText(statement, names, left);
  });
  return `${texts.join('').trim() || 'export {};'}\n`;
}

/** With the names alone that are still there. */
function linkText(statement, names, left) {
  const target = targetOf(statement, left.program);
  if (statement.moduleSpecifier?.text.startsWith('.') && !left.used.has(target)) return '';
  const list = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings : statement.exportClause;
  if (!list?.elements) return statement.getFullText();
  const there = list.elements.filter((one) =>
    ts.isImportDeclaration(statement) ? names.has(one.name.text) : isNeeded(one, left),
  );
  if (there.length === 0) return list.elements.length > 0 ? '' : statement.getFullText();
  if (there.length === list.elements.length) return statement.getFullText();
  const text = statement.getFullText();
  const before = text.slice(0, list.getStart() - statement.getFullStart());
  return `${before}{ ${there.map((one) => one.getText()).join(', ')} }${text.slice(list.getEnd() - statement.getFullStart())}`;
}

function isNeeded(specifier, { checker, needed }) {
  const symbol = checker.getAliasedSymbol(checker.getSymbolAtLocation(specifier.name));
  return (symbol.declarations ?? []).some((node) => {
    if (!node.getSourceFile().fileName.startsWith(MODULES)) return true;
    return needed.has(ts.findAncestor(node, ({ parent }) => parent && ts.isSourceFile(parent)));
  });
}
