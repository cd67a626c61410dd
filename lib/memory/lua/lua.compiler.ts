import type { Call, Expression, FunctionBody, Local, Statement, Target, Upvalue } from './lua.syntax.js';
import { asNumber, asText, isTrue, LuaError, LuaTable, typeOf } from './lua.values.js';
import type { LuaFunction, Value } from './lua.values.js';

/** A variable that outlives its block, because a function inside uses it. */
interface Cell {
  value: Value;
}

/** One call of a function of the script. */
interface Frame {
  readonly slots: (Value | Cell)[];
  readonly cells: readonly Cell[];
  readonly rest: Value[];
  readonly globals: Globals;
}

export type Globals = Readonly<Record<string, Value>>;

type Evaluate = (frame: Frame) => Value;
type EvaluateAll = (frame: Frame) => Value[];
/** Undefined: on to the next statement. */
type Execute = (frame: Frame) => Value[] | typeof BREAK | undefined;
const BREAK = Symbol('break');

/**
 * Turns a script into nested JavaScript functions, one per node. Generating source for the engine to compile would be
 * faster still, but is forbidden where code generation from text is switched off, and nobody could step through it.
 */
export function compile(body: FunctionBody): (globals: Globals) => Value[] {
  const run = compileFunction(body);
  return (globals) => run({ slots: [], cells: [], rest: [], globals })([]);
}

function compileFunction(body: FunctionBody): (outer: Frame) => LuaFunction {
  const { parameters, hasRest, upvalues } = body;
  const run = compileBlock(body.block);
  const assign = parameters.map(declare);
  return (outer) => {
    const cells = upvalues.map((upvalue) => cellOf(outer, upvalue));
    return (args) => {
      const frame: Frame = {
        slots: [],
        cells,
        rest: hasRest ? args.slice(parameters.length) : [],
        globals: outer.globals,
      };
      for (let i = 0; i < assign.length; i++) assign[i]!(frame, args[i]);
      const result = run(frame);
      return Array.isArray(result) ? result : [];
    };
  };
}

function cellOf(frame: Frame, upvalue: Upvalue): Cell {
  return upvalue.from === 'cells' ? frame.cells[upvalue.index]! : (frame.slots[upvalue.local.slot] as Cell);
}

/** Each run of a declaration makes a variable of its own. */
function declare({ slot, captured }: Local): (frame: Frame, value: Value) => void {
  if (captured) return (frame, value) => void (frame.slots[slot] = { value });
  return (frame, value) => void (frame.slots[slot] = value);
}

function compileBlock(block: readonly Statement[]): Execute {
  const statements = block.map(compileStatement);
  return (frame) => {
    for (const statement of statements) {
      const result = statement(frame);
      if (result !== undefined) return result;
    }
    return undefined;
  };
}

function compileStatement(statement: Statement): Execute {
  switch (statement.kind) {
    case 'local': {
      const assign = statement.locals.map(declare);
      if (assign.length === 1 && statement.values.length === 1) {
        const [set, value] = [assign[0]!, compileOne(statement.values[0]!)];
        return (frame) => set(frame, value(frame)) as undefined;
      }
      const values = compileAll(statement.values);
      return (frame) => {
        const results = values(frame);
        for (let i = 0; i < assign.length; i++) assign[i]!(frame, results[i]);
        return undefined;
      };
    }
    case 'localFunction': {
      const set = declare(statement.local);
      const make = compileFunction(statement.body);
      const { slot, captured } = statement.local;
      return (frame) => {
        set(frame, undefined); // Before the function is made: it may call itself.
        const made = make(frame);
        if (captured) (frame.slots[slot] as Cell).value = made;
        else frame.slots[slot] = made;
        return undefined;
      };
    }
    case 'assign':
      return compileAssignment(statement.targets, statement.values);
    case 'callStatement': {
      const call = compileCall(statement.call);
      return (frame) => call(frame) && undefined;
    }
    case 'do':
      return compileBlock(statement.block);
    case 'while': {
      const condition = compileOne(statement.condition);
      return loop(compileBlock(statement.block), (frame, body) => {
        while (isTrue(condition(frame))) {
          const result = body(frame);
          if (result !== undefined) return result;
        }
        return undefined;
      });
    }
    case 'repeat': {
      const condition = compileOne(statement.condition);
      return loop(compileBlock(statement.block), (frame, body) => {
        do {
          const result = body(frame);
          if (result !== undefined) return result;
        } while (!isTrue(condition(frame)));
        return undefined;
      });
    }
    case 'if':
      return compileIf(statement);
    case 'numericFor':
      return compileNumericFor(statement);
    case 'genericFor':
      return compileGenericFor(statement);
    case 'return':
      return compileAll(statement.values);
    case 'break':
      return () => BREAK;
  }
}

function loop(body: Execute, run: (frame: Frame, body: Execute) => ReturnType<Execute>): Execute {
  return (frame) => {
    const result = run(frame, body);
    return result === BREAK ? undefined : result;
  };
}

function compileIf({ branches, otherwise }: Extract<Statement, { kind: 'if' }>): Execute {
  const compiled = branches.map(({ condition, block }) => ({
    condition: compileOne(condition),
    block: compileBlock(block),
  }));
  const last = otherwise && compileBlock(otherwise);
  return (frame) => {
    for (const { condition, block } of compiled) if (isTrue(condition(frame))) return block(frame);
    return last?.(frame);
  };
}

function compileNumericFor(statement: Extract<Statement, { kind: 'numericFor' }>): Execute {
  const { line } = statement;
  const bounds = [statement.from, statement.to, statement.by ?? { kind: 'constant' as const, value: 1 }].map(
    compileOne,
  );
  const set = declare(statement.local);
  return loop(compileBlock(statement.block), (frame, body) => {
    const [from, to, by] = bounds.map((bound, n) => {
      const value = asNumber(bound(frame));
      if (value === undefined)
        throw new LuaError(`'for' ${['initial value', 'limit', 'step'][n]} must be a number`, line);
      return value;
    }) as [number, number, number];
    for (let i = from; by > 0 ? i <= to : i >= to; i += by) {
      set(frame, i);
      const result = body(frame);
      if (result !== undefined) return result;
    }
    return undefined;
  });
}

function compileGenericFor({ locals, values, block, line }: Extract<Statement, { kind: 'genericFor' }>): Execute {
  const start = compileAll(values);
  const assign = locals.map(declare);
  return loop(compileBlock(block), (frame, body) => {
    const [step, state, first] = start(frame);
    for (let control = first; ;) {
      const results = callValue(step, [state, control], line, 'for iterator');
      if (results[0] === undefined) return undefined;
      control = results[0];
      for (let i = 0; i < assign.length; i++) assign[i]!(frame, results[i]);
      const result = body(frame);
      if (result !== undefined) return result;
    }
  });
}

function compileAssignment(targets: readonly Target[], values: readonly Expression[]): Execute {
  const stores = targets.map(compileStore);
  if (stores.length === 1 && values.length === 1) {
    const [prepare, value] = [stores[0]!, compileOne(values[0]!)];
    return (frame) => prepare(frame)(value(frame)) as undefined;
  }
  const all = compileAll(values);
  return (frame) => {
    const ready = stores.map((prepare) => prepare(frame));
    const results = all(frame);
    for (let i = ready.length - 1; i >= 0; i--) ready[i]!(results[i]);
    return undefined;
  };
}

/** In two steps: where to is evaluated before what. */
function compileStore(target: Target): (frame: Frame) => (value: Value) => void {
  switch (target.kind) {
    case 'local': {
      const { slot, captured } = target.local;
      if (captured) return (frame) => (value) => void ((frame.slots[slot] as Cell).value = value);
      return (frame) => (value) => void (frame.slots[slot] = value);
    }
    case 'upvalue':
      return (frame) => (value) => void (frame.cells[target.index]!.value = value);
    case 'global':
      return () => () => {
        throw new LuaError('Attempt to modify a readonly table', target.line);
      };
    case 'index': {
      const [object, key] = [compileOne(target.object), compileOne(target.key)];
      return (frame) => {
        const table = object(frame);
        const at = key(frame);
        return (value) => {
          if (!(table instanceof LuaTable)) throw notIndexable(table, target.object, target.line);
          locating(target.line, () => table.set(at, value));
        };
      };
    }
  }
}

/** Of a list the last one may stand for several values. */
function compileAll(expressions: readonly Expression[]): EvaluateAll {
  const last = expressions.at(-1);
  const many = last && compileMany(last);
  const single = (many ? expressions.slice(0, -1) : expressions).map(compileOne);
  return (frame) => {
    const values: Value[] = [];
    for (const one of single) values.push(one(frame));
    if (many) for (const value of many(frame)) values.push(value);
    return values;
  };
}

function compileMany(expression: Expression): EvaluateAll | undefined {
  if (expression.kind === 'call' || expression.kind === 'method') return compileCall(expression);
  return expression.kind === 'rest' ? (frame) => frame.rest : undefined;
}

function compileCall(call: Call): EvaluateAll {
  const args = compileAll(call.args);
  const { line } = call;
  if (call.kind === 'call') {
    const callee = compileOne(call.callee);
    const name = nameOf(call.callee);
    return (frame) => callValue(callee(frame), args(frame), line, name);
  }
  const object = compileOne(call.object);
  return (frame) => {
    const self = object(frame);
    const method = indexed(self, call.name, frame, call.object, line);
    return callValue(method, [self, ...args(frame)], line, `method '${call.name}'`);
  };
}

function callValue(callee: Value, args: Value[], line: number, name: string): Value[] {
  if (typeof callee !== 'function') throw new LuaError(`attempt to call ${name} (a ${typeOf(callee)} value)`, line);
  try {
    return callee(args);
  } catch (error) {
    throw error instanceof LuaError ? error.at(line) : error;
  }
}

/** Tells an error that does not know it where in the script it happened. */
function locating(line: number, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw error instanceof LuaError ? error.at(line) : error;
  }
}

function compileOne(expression: Expression): Evaluate {
  switch (expression.kind) {
    case 'constant': {
      const { value } = expression;
      return () => value;
    }
    case 'local': {
      const { slot, captured } = expression.local;
      if (captured) return (frame) => (frame.slots[slot] as Cell).value;
      return (frame) => frame.slots[slot] as Value;
    }
    case 'upvalue': {
      const { index } = expression;
      return (frame) => frame.cells[index]!.value;
    }
    case 'global': {
      const { name, line } = expression;
      return (frame) => {
        const value = frame.globals[name];
        if (value === undefined)
          throw new LuaError(`Script attempted to access nonexistent global variable '${name}'`, line);
        return value;
      };
    }
    case 'index': {
      const [object, key] = [compileOne(expression.object), compileOne(expression.key)];
      return (frame) => indexed(object(frame), key(frame), frame, expression.object, expression.line);
    }
    case 'call':
    case 'method': {
      const call = compileCall(expression);
      return (frame) => call(frame)[0];
    }
    case 'rest':
      return (frame) => frame.rest[0];
    case 'first':
      return compileOne(expression.value);
    case 'function':
      return compileFunction(expression.body);
    case 'table':
      return compileTable(expression);
    case 'unary':
      return compileUnary(expression);
    case 'binary':
      return compileBinary(expression);
  }
}

function compileTable({ list, fields, line }: Extract<Expression, { kind: 'table' }>): Evaluate {
  const values = compileAll(list);
  const pairs = fields.map(({ key, value }) => [compileOne(key), compileOne(value)] as const);
  return (frame) => {
    const table = new LuaTable(values(frame));
    for (const [key, value] of pairs) locating(line, () => table.set(key(frame), value(frame)));
    return table;
  };
}

function compileUnary({ operator, operand, line }: Extract<Expression, { kind: 'unary' }>): Evaluate {
  const value = compileOne(operand);
  if (operator === 'not') return (frame) => !isTrue(value(frame));
  if (operator === '-') return (frame) => -arithmetic(value(frame), operand, line);
  return (frame) => {
    const of = value(frame);
    if (of instanceof LuaTable || typeof of === 'string') return of.length;
    throw new LuaError(`attempt to get length of ${described(of, operand)}`, line);
  };
}

function compileBinary({ operator, left, right, line }: Extract<Expression, { kind: 'binary' }>): Evaluate {
  const [a, b] = [compileOne(left), compileOne(right)];
  const number = (of: Evaluate, expression: Expression) => (frame: Frame) => {
    const value = of(frame);
    return typeof value === 'number' ? value : arithmetic(value, expression, line);
  };
  const [x, y] = [number(a, left), number(b, right)];
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
      return (frame) => {
        const [head, tail] = [a(frame), b(frame)];
        const [start, end] = [asText(head), asText(tail)];
        if (start !== undefined && end !== undefined) return start + end;
        const [value, expression] = start === undefined ? [head, left] : [tail, right];
        throw new LuaError(`attempt to concatenate ${described(value, expression)}`, line);
      };
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

function indexed(object: Value, key: Value, frame: Frame, expression: Expression, line: number): Value {
  if (object instanceof LuaTable) return object.get(key);
  // Texts have the functions of `string` as methods.
  if (typeof object === 'string') return (frame.globals['string'] as LuaTable).get(key);
  throw notIndexable(object, expression, line);
}

function notIndexable(value: Value, expression: Expression, line: number): LuaError {
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

function nameOf(expression: Expression): string {
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
