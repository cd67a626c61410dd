import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** A TypeScript file of lib, parsed. */
export interface LibrarySource {
  /** Below lib. */
  readonly path: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
}

/** The TypeScript files of lib that people write. */
export function librarySources(): LibrarySource[] {
  return readdirSync('lib', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.generated.ts'))
    .sort()
    .map((path) => parsed(path, readFileSync(join('lib', path), 'utf8')));
}

export function parsed(path: string, text: string): LibrarySource {
  return { path, text, tree: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true) };
}

/** Each node of a tree, the outer ones first. */
export function* nodesOf(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* nodesOf(child);
}

export function lineOf({ tree }: LibrarySource, node: ts.Node): number {
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
}
