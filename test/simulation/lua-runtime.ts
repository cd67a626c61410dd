import type { Globals } from '../../lib/memory/lua/lua.frame.js';
import type { Expression } from '../../lib/memory/lua/lua.syntax.js';
import type { LuaTable, Value } from '../../lib/memory/lua/lua.values.js';

/** Of the built package: its values and its ways to fail. */
export interface LuaModules {
  readonly values: typeof import('../../lib/memory/lua/lua.values.js');
  readonly operators: typeof import('../../lib/memory/lua/lua.operators.js');
  readonly library: typeof import('../../lib/memory/lua/lua.library.js');
}

/** An expression whose operands are not what they usually are. */
interface Slow {
  readonly expression: Expression;
  /** For messages. */
  readonly name: string;
  evaluate(left: Value, right?: Value): Value;
}

interface Runtime {
  /** Names the functions for the text of a script. */
  readonly header: string;
  readonly functions: object;
  slowPath(expression: Expression): Slow;
}

/** The functions that a script in JavaScript calls. Numbers and texts go the short way, all else goes the store's. */
export function runtimeOf(modules: LuaModules): Runtime {
  const functions = { ...operatorsOf(modules), ...tablesOf(modules), ...callsOf(modules) };
  const names = Object.keys(functions).map((name) => `${name}: $${name}`);
  return { header: `const { ${names.join(', ')} } = R;`, functions, slowPath: slowPathOf(modules) };
}

function slowPathOf({ operators }: LuaModules): (expression: Expression) => Slow {
  const frame = { slots: [], cells: [], rest: [], globals: {} };
  return (expression) => {
    let [a, b]: Value[] = [];
    const [left, right] = [() => a, () => b];
    const run =
      expression.kind === 'binary'
        ? operators.compileBinary(expression, left, right)
        : expression.kind === 'unary' && operators.compileUnary(expression, left);
    const evaluate = (one: Value, other: Value) => {
      [a, b] = [one, other];
      return (run as (of: typeof frame) => Value)(frame);
    };
    return { expression, name: operators.nameOf(expression), evaluate };
  };
}

function operatorsOf({ values }: LuaModules) {
  const { LuaTable } = values;
  const areNumbers = (a: Value, b: Value): boolean => typeof a === 'number' && typeof b === 'number';
  return {
    isTrue: (value: Value) => value !== undefined && value !== false,
    add: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? (a as number) + (b as number) : slow.evaluate(a, b)),
    sub: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? (a as number) - (b as number) : slow.evaluate(a, b)),
    mul: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? (a as number) * (b as number) : slow.evaluate(a, b)),
    lt: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? a! < b! : slow.evaluate(a, b)),
    gt: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? a! > b! : slow.evaluate(a, b)),
    le: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? a! <= b! : slow.evaluate(a, b)),
    ge: (a: Value, b: Value, slow: Slow) => (areNumbers(a, b) ? a! >= b! : slow.evaluate(a, b)),
    join: (a: Value, b: Value, slow: Slow) =>
      typeof a === 'string' && typeof b === 'string' ? a + b : slow.evaluate(a, b),
    other: (a: Value, b: Value, slow: Slow) => slow.evaluate(a, b),
    minus: (a: Value, slow: Slow) => (typeof a === 'number' ? -a : slow.evaluate(a)),
    length: (a: Value, slow: Slow) => (typeof a === 'string' || a instanceof LuaTable ? a.length : slow.evaluate(a)),
  };
}

function tablesOf({ values, operators, library }: LuaModules) {
  const { LuaTable, LuaError } = values;
  const frameOf = (globals: Globals) => ({ slots: [], cells: [], rest: [], globals });
  const locate = (error: unknown, line: number) => (error instanceof LuaError ? error.at(line) : error);
  const write = (table: LuaTable, key: Value, value: Value, line: number): void => {
    try {
      table.set(key, value);
    } catch (error) {
      throw locate(error, line);
    }
  };
  return {
    get: (object: Value, key: Value, { expression }: Slow, globals: Globals) => {
      if (object instanceof LuaTable) return object.get(key);
      const { object: of, line } = expression as Extract<Expression, { kind: 'index' }>;
      return operators.indexed(object, key, frameOf(globals), of, line);
    },
    set: (object: Value, key: Value, value: Value, { expression }: Slow, line: number) => {
      if (object instanceof LuaTable) return write(object, key, value, line);
      throw operators.notIndexable(object, (expression as Extract<Expression, { kind: 'index' }>).object, line);
    },
    table: (list: Value[], pairs: readonly (readonly [Value, Value])[], line: number) => {
      const table = new LuaTable(list);
      for (const [key, value] of pairs) write(table, key, value, line);
      return table;
    },
    list: (value: Value, line: number) => {
      if (!(value instanceof LuaTable)) {
        operators.callValue(library.STANDARD['ipairs'], [value], line, "global 'ipairs'");
      }
      return value;
    },
  };
}

function callsOf({ values, operators }: LuaModules) {
  const { LuaError } = values;
  return {
    call: operators.callValue,
    method: (self: Value, name: string, args: Value[], { expression }: Slow, globals: Globals, line: number) => {
      const method = operators.indexed(self, name, { slots: [], cells: [], rest: [], globals }, expression, line);
      return operators.callValue(method, [self, ...args], line, `method '${name}'`);
    },
    bound: (value: Value, n: number, line: number) => {
      const number = values.asNumber(value);
      if (number !== undefined) return number;
      throw new LuaError(`'for' ${['initial value', 'limit', 'step'][n]!} must be a number`, line);
    },
    global: (value: Value, name: string, line: number) => {
      if (value !== undefined) return value;
      throw new LuaError(`Script attempted to access nonexistent global variable '${name}'`, line);
    },
    readOnly: (line: number) => {
      throw new LuaError('Attempt to modify a readonly table', line);
    },
  };
}
