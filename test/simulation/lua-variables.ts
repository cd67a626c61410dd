import type { Expression, FunctionBody, Local } from '../../lib/memory/lua/lua.syntax.js';

/** A function of a script, inside of those around it. */
export interface Inside {
  readonly body: FunctionBody;
  readonly around: Inside | undefined;
}

type Variable = Extract<Expression, { kind: 'local' | 'upvalue' }>;

export function isVariable(expression: Expression): expression is Variable {
  return expression.kind === 'local' || expression.kind === 'upvalue';
}

/** The declaration that is meant. */
export function localOf(variable: Variable, inside: Inside): Local {
  if (variable.kind === 'local') return variable.local;
  const upvalue = inside.body.upvalues[variable.index]!;
  return upvalue.from === 'frame' ? upvalue.local : localOf({ kind: 'upvalue', index: upvalue.index }, inside.around!);
}

/** Local functions that are called by their names and nothing else: what a name stands for is known there. */
export function knownFunctions(script: FunctionBody): Set<Local> {
  const known = new Set<Local>();
  const others = new Set<Local>();
  const visit = (node: unknown, inside: Inside): void => {
    if (Array.isArray(node)) for (const one of node) visit(one, inside);
    if (typeof node !== 'object' || node === null || !('kind' in node)) {
      // The parts of a branch and of a field of a table have no kind.
      if (typeof node === 'object' && node !== null && !Array.isArray(node) && !('slot' in node)) {
        for (const part of Object.values(node)) visit(part, inside);
      }
      return;
    }
    if (node.kind === 'localFunction') known.add((node as unknown as { local: Local }).local);
    if (node.kind === 'function' || node.kind === 'localFunction') {
      const { body } = node as unknown as { body: FunctionBody };
      return visit(body.block, { body, around: inside });
    }
    const expression = node as Expression;
    if (expression.kind === 'call') {
      if (!isVariable(expression.callee)) visit(expression.callee, inside);
      return visit(expression.args, inside);
    }
    // A declaration is of the same kind as what it declares, and has `locals`.
    if (isVariable(expression) && !('locals' in expression)) return void others.add(localOf(expression, inside));
    for (const part of Object.values(node)) visit(part, inside);
  };
  visit(script.block, { body: script, around: undefined });
  for (const local of others) known.delete(local);
  return known;
}
