import type { Cell, Evaluate, EvaluateAll, Frame, Globals } from './lua.frame.js';
import { callValue, compileBinary, compileUnary, indexed, locating, nameOf, notIndexable } from './lua.operators.js';
import type { Call, Expression, FunctionBody, Local, Statement, Target, Upvalue } from './lua.syntax.js';
import { asNumber, isTrue, LuaError, LuaTable } from './lua.values.js';
import type { LuaFunction, Value } from './lua.values.js';

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
    case 'local':
      return compileLocal(statement);
    case 'localFunction':
      return compileLocalFunction(statement);
    case 'assign':
      return compileAssignment(statement.targets, statement.values);
    case 'callStatement': {
      const call = compileCall(statement.call);
      return (frame) => call(frame) && undefined;
    }
    case 'do':
      return compileBlock(statement.block);
    case 'while':
      return compileWhile(statement);
    case 'repeat':
      return compileRepeat(statement);
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

function compileLocal(statement: Extract<Statement, { kind: 'local' }>): Execute {
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

function compileLocalFunction({ local, body }: Extract<Statement, { kind: 'localFunction' }>): Execute {
  const set = declare(local);
  const make = compileFunction(body);
  const { slot, captured } = local;
  return (frame) => {
    set(frame, undefined); // Before the function is made: it may call itself.
    const made = make(frame);
    if (captured) (frame.slots[slot] as Cell).value = made;
    else frame.slots[slot] = made;
    return undefined;
  };
}

function compileWhile(statement: Extract<Statement, { kind: 'while' }>): Execute {
  const condition = compileOne(statement.condition);
  return loop(compileBlock(statement.block), (frame, body) => {
    while (isTrue(condition(frame))) {
      const result = body(frame);
      if (result !== undefined) return result;
    }
    return undefined;
  });
}

function compileRepeat(statement: Extract<Statement, { kind: 'repeat' }>): Execute {
  const condition = compileOne(statement.condition);
  return loop(compileBlock(statement.block), (frame, body) => {
    do {
      const result = body(frame);
      if (result !== undefined) return result;
    } while (!isTrue(condition(frame)));
    return undefined;
  });
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
      return compileUnary(expression, compileOne(expression.operand));
    case 'binary':
      return compileBinary(expression, compileOne(expression.left), compileOne(expression.right));
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
