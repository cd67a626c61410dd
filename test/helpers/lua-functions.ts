export interface LuaFunction {
  readonly name: string;
  readonly lines: number;
}

// What must be skipped, then the words that open and close a block. `for` and `while` open theirs with `do`.
const TOKEN =
  /--\[(=*)\[[\s\S]*?\]\1\]|--[^\n]*|\[(=*)\[[\s\S]*?\]\2\]|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|\b(?:function\s*([\w.:]*)|if|do|repeat|end|until)\b/g;

/** The functions of a script with their lines, from `function` to its `end`. */
export function luaFunctions(source: string): LuaFunction[] {
  const lineAt = (at: number) => source.slice(0, at).split('\n').length;
  const open: { word: string; name: string; line: number }[] = [];
  const found: LuaFunction[] = [];
  for (const token of source.matchAll(TOKEN)) {
    const word = /^[a-z]+/.exec(token[0])?.[0];
    if (word === undefined) continue;
    const line = lineAt(token.index);
    if (word !== 'end' && word !== 'until') open.push({ word, name: token[3] || 'function', line });
    else {
      const closed = open.pop();
      if (!closed) throw new Error(`"${word}" in line ${line} closes nothing.`);
      if (closed.word === 'function') found.push({ name: closed.name, lines: line - closed.line + 1 });
    }
  }
  if (open.length > 0) throw new Error(`"${open.at(-1)!.word}" in line ${open.at(-1)!.line} is not closed.`);
  return found;
}
