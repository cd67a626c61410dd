import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { nodesOf } from './library-sources.js';
import type { LibrarySource } from './library-sources.js';

/** Files that import each other, types included: each group once, its files sorted. */
export function importCircles(sources: readonly LibrarySource[]): string[][] {
  const targets = new Map(sources.map((source) => [source.path, importsOf(source)]));
  const reach = new Map(sources.map(({ path }) => [path, reachable(path, targets)]));
  const circles = new Set<string>();
  for (const [path, reached] of reach) {
    if (!reached.has(path)) continue;
    const others = [...reached].filter((other) => reach.get(other)!.has(path));
    circles.add(others.sort().join(' '));
  }
  return [...circles].sort().map((circle) => circle.split(' '));
}

function importsOf({ path, tree }: LibrarySource): string[] {
  const literals = [...nodesOf(tree)].filter((node) => ts.isStringLiteral(node));
  return literals
    .filter(({ parent }) => ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent) || isCall(parent))
    .filter(({ text }) => text.startsWith('.'))
    .map(({ text }) => normalize(join(dirname(path), text)).replace(/\.js$/, '.ts'));
}

/** `import('./x.js')` */
function isCall(node: ts.Node): boolean {
  return ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
}

function reachable(from: string, targets: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set<string>();
  const open = [...(targets.get(from) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next) || !targets.has(next)) continue;
    reached.add(next);
    open.push(...targets.get(next)!);
  }
  return reached;
}
