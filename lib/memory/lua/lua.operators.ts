import type { Evaluate, Frame } from './lua.frame.js';
import type { Expression } from './lua.syntax.js';
import { asNumber, asText, isTrue, LuaError, LuaTable, typeOf } from './lua.values.js';
import type { Value } from './lua.values.js';

/** What an operator does with its compiled operands. The expressions they were compiled from are for messages. */
export function compileUnary(
  { operator, operand, line }: Extract<Expression, { kind: 'unary' }>,
  value: Evaluate,
): Evaluate {
  if (operator === 'not') return (frame) => !isTrue(value(frame));
  if (operator === '-') return (frame) => -arithmetic(value(frame), operand, line);
  return (frame) => {
    const of = value(frame);
    if (of instanceof LuaTable || typeof of === 'string') return of.length;
    throw new LuaError(`attempt to get length of ${described(of, operand)}`, line);
  };
}

type Binary = Extract<Expression, { kind: 'binary' }>;

export function compileBinary(expression: Binary, a: Evaluate, b: Evaluate): Evaluate {
  const { operator, line } = expression;
  switch (operator) {
    case 'and':
      return (frame) => {
        const value = a(frame);
        return isTrue(value) ? b(frame) : value;
      };
    case 'or':
      return (frame) => {
        const value = a(frame);
        return isTrue(value) ? value : b(frame);
      };
    case '==':
      return (frame) => a(frame) === b(frame);
    case '~=':
      return (frame) => a(frame) !== b(frame);
    case '<':
      return (frame) => isLess(a(frame), b(frame), line);
    case '>':
      return (frame) => {
        const value = a(frame);
        return isLess(b(frame), value, line);
      };
    case '<=':
      return (frame) => isAtMost(a(frame), b(frame), line);
    case '>=':
      return (frame) => {
        const value = a(frame);
        return isAtMost(b(frame), value, line);
      };
    case '..':
      return compileConcatenation(expression, a, b);
    default:
      return compileArithmetic(expression, a, b);
  }
}

function compileConcatenation({ left, right, line }: Binary, a: Evaluate, b: Evaluate): Evaluate {
  return (frame) => {
    const [head, tail] = [a(frame), b(frame)];
    const [start, end] = [asText(head), asText(tail)];
    if (start !== undefined && end !== undefined) return start + end;
    const [value, expression] = start === undefined ? [head, left] : [tail, right];
    throw new LuaError(`attempt to concatenate ${described(value, expression)}`, line);
  };
}

function compileArithmetic({ operator, left, right, line }: Binary, a: Evaluate, b: Evaluate): Evaluate {
  const [x, y] = [compileNumber(a, left, line), compileNumber(b, right, line)];
  switch (operator) {
    case '+':
      return (frame) => x(frame) + y(frame);
    case '-':
      return (frame) => x(frame) - y(frame);
    case '*':
      return (frame) => x(frame) * y(frame);
    case '/':
      return (frame) => x(frame) / y(frame);
    case '%':
      return (frame) => {
        const [value, by] = [x(frame), y(frame)];
        return value - Math.floor(value / by) * by;
      };
    case '^':
      return (frame) => x(frame) ** y(frame);
    default:
      throw new LuaError(`operator ${operator} is unknown`, line);
  }
}

function compileNumber(of: Evaluate, expression: Expression, line: number): (frame: Frame) => number {
  return (frame) => {
    const value = of(frame);
    return typeof value === 'number' ? value : arithmetic(value, expression, line);
  };
}

function isLess(a: Value, b: Value, line: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a < b;
  if (typeof a === 'string' && typeof b === 'string') return a < b;
  throw notComparable(a, b, line);
}

function isAtMost(a: Value, b: Value, line: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a <= b;
  if (typeof a === 'string' && typeof b === 'string') return a <= b;
  throw notComparable(a, b, line);
}

function arithmetic(value: Value, expression: Expression, line: number): number {
  const number = asNumber(value);
  if (number !== undefined) return number;
  throw new LuaError(`attempt to perform arithmetic on ${described(value, expression)}`, line);
}

export function callValue(callee: Value, args: Value[], line: number, name: string): Value[] {
  if (typeof callee !== 'function') throw new LuaError(`attempt to call ${name} (a ${typeOf(callee)} value)`, line);
  try {
    return callee(args);
  } catch (error) {
    throw error instanceof LuaError ? error.at(line) : error;
  }
}

/** Tells an error that does not know it where in the script it happened. */
export function locating(line: number, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw error instanceof LuaError ? error.at(line) : error;
  }
}

export function indexed(object: Value, key: Value, frame: Frame, expression: Expression, line: number): Value {
  if (object instanceof LuaTable) return object.get(key);
  // Texts have the functions of `string` as methods.
  if (typeof object === 'string') return (frame.globals['string'] as LuaTable).get(key);
  throw notIndexable(object, expression, line);
}

export function notIndexable(value: Value, expression: Expression, line: number): LuaError {
  return new LuaError(`attempt to index ${described(value, expression)}`, line);
}

function notComparable(a: Value, b: Value, line: number): LuaError {
  const [one, other] = [typeOf(a), typeOf(b)];
  const what = one === other ? `two ${one} values` : `${one} with ${other}`;
  return new LuaError(`attempt to compare ${what}`, line);
}

function described(value: Value, expression: Expression): string {
  const name = nameOf(expression);
  return name === '' ? `a ${typeOf(value)} value` : `${name} (a ${typeOf(value)} value)`;
}

export function nameOf(expression: Expression): string {
  switch (expression.kind) {
    case 'local':
      return `local '${expression.local.name}'`;
    case 'upvalue':
      return 'upvalue';
    case 'global':
      return `global '${expression.name}'`;
    case 'index':
      return expression.key.kind === 'constant' ? `field '${String(expression.key.value)}'` : "field '?'";
    default:
      return '';
  }
}
