import type { FunctionBody } from '../../lib/memory/lua/lua.syntax.js';

/** One way that a script may go. */
export interface LuaBranch {
  /** Of the text without its first line. */
  readonly line: number;
  readonly what: string;
  taken: number;
}

/** Which ways the scripts go. Nothing is counted unless somebody has asked for it before the first script is compiled. */
export class LuaBranches {
  /** By the text of the script, without its first line. */
  readonly scripts = new Map<string, LuaBranch[]>();
  readonly #texts = new WeakMap<FunctionBody, string>();

  parsed(text: string, body: FunctionBody): FunctionBody {
    this.#texts.set(body, text.replace(/^\n/, ''));
    return body;
  }

  /** An empty list, into which its compiler puts its branches. */
  of(body: FunctionBody): LuaBranch[] {
    const branches: LuaBranch[] = [];
    this.scripts.set(this.#texts.get(body) ?? '', branches);
    return branches;
  }
}

let counted: LuaBranches | undefined;

export function countLuaBranches(): LuaBranches {
  counted = new LuaBranches();
  return counted;
}

export function countedLuaBranches(): LuaBranches | undefined {
  return counted;
}

/** The first line that any part of it tells; 0 of none. */
export function lineOf(node: unknown): number {
  if (typeof node !== 'object' || node === null) return 0;
  if ('line' in node) return node.line as number;
  for (const part of Object.values(node)) {
    const line = lineOf(part);
    if (line > 0) return line;
  }
  return 0;
}
