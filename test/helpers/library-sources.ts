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

/** The files of lib that people write and that end like this, below lib. */
export function libraryFiles(ending: RegExp): string[] {
  return readdirSync('lib', { recursive: true, encoding: 'utf8' })
    .filter((path) => ending.test(path) && !path.endsWith('.generated.ts'))
    .sort();
}

/** The TypeScript files of lib that people write. */
export function librarySources(): LibrarySource[] {
  return libraryFiles(/\.tsx?$/).map((path) => parsed(path, readFileSync(join('lib', path), 'utf8')));
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

/** Lines from its first to its last; a comment above it does not count. */
export function linesOf({ tree }: LibrarySource, node: ts.Node): number {
  const line = (at: number) => tree.getLineAndCharacterOfPosition(at).line;
  return line(node.end) - line(node.getStart(tree)) + 1;
}

export function lineOf({ tree }: LibrarySource, node: ts.Node): number {
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
}
