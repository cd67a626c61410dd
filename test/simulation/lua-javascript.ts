import vm from 'node:vm';
import type { Globals } from '../../lib/memory/lua/lua.frame.js';
import type { Call, Expression, FunctionBody, Local, Statement, Target } from '../../lib/memory/lua/lua.syntax.js';
import type { Value } from '../../lib/memory/lua/lua.values.js';
import { countedLuaBranches, lineOf } from './lua-branches.js';
import type { LuaBranch } from './lua-branches.js';
import { runtimeOf } from './lua-runtime.js';
import type { LuaModules } from './lua-runtime.js';
import { isVariable, knownFunctions, localOf } from './lua-variables.js';
import type { Inside } from './lua-variables.js';

/** Of the functions that it calls, and what stands for its expressions. */
type Make = (...args: unknown[]) => (globals: Globals) => Value[];
type Compile = (body: FunctionBody) => (globals: Globals) => Value[];

/**
 * What the store's own compiler of Lua does, by way of a text of JavaScript: several times as fast, and the server of a simulation
 * does little else. The values, the library and all that goes wrong are the store's own.
 */
export function compilerOf(modules: LuaModules): Compile {
  const runtime = runtimeOf(modules);
  return (body) => {
    const branches = countedLuaBranches()?.of(body);
    const writer = new Writer(body, branches);
    const text = writer.script();
    const make = vm.compileFunction(`'use strict';\n${runtime.header}\n${text}`, ['R', 'E', 'B']) as Make;
    return make(
      runtime.functions,
      writer.expressions.map((one) => runtime.slowPath(one)),
      branches,
    );
  };
}

const NUMERIC: Readonly<Record<string, string>> = { '+': 'add', '-': 'sub', '*': 'mul' };
const COMPARING: Readonly<Record<string, string>> = { '<': 'lt', '>': 'gt', '<=': 'le', '>=': 'ge' };

/** Writes one script. */
class Writer {
  /** For what is seldom: the store's own way to evaluate them. */
  readonly expressions: Expression[] = [];
  readonly #names = new Map<Local, string>();
  readonly #known: ReadonlySet<Local>;
  #lists = 0;

  constructor(
    private readonly body: FunctionBody,
    /** Of the script; undefined where they are not counted. */
    private readonly branches: LuaBranch[] | undefined,
  ) {
    this.#known = knownFunctions(body);
  }

  script(): string {
    const inside = { body: this.body, around: undefined };
    return `return (globals) => { let t; const rest = []; ${this.#block(this.body.block, inside)} return []; };`;
  }

  #name(local: Local): string {
    let name = this.#names.get(local);
    if (name === undefined) this.#names.set(local, (name = `${local.name}_${this.#names.size}`));
    return name;
  }

  #keep(expression: Expression): number {
    return this.expressions.push(expression) - 1;
  }

  /** Counts that the script comes here. @returns a statement, or nothing where nothing is counted */
  #mark(what: string, near: unknown): string {
    if (!this.branches) return '';
    // Of what tells no line, the one of the branch before it.
    const line = (lineOf(near) > 0 ? lineOf(near) - 1 : this.branches.at(-1)?.line) ?? 0;
    const n = this.branches.push({ line, what, taken: 0 }) - 1;
    return `B[${n}].taken++;`;
  }

  /** The same before an expression. */
  #marked(what: string, near: unknown, text: string): string {
    const mark = this.#mark(what, near);
    return mark === '' ? text : `(${mark.slice(0, -1)}, ${text})`;
  }

  // --- Statements -------------------------------------------------------------------------------------------------------

  #block(block: readonly Statement[], inside: Inside): string {
    return block.map((statement) => this.#statement(statement, inside)).join('\n');
  }

  #statement(statement: Statement, inside: Inside): string {
    switch (statement.kind) {
      case 'local':
        return this.#local(statement, inside);
      case 'localFunction': {
        const isKnown = this.#known.has(statement.local);
        return `${isKnown ? 'const' : 'let'} ${this.#name(statement.local)} = ${this.#function(statement.body, inside, isKnown)};`;
      }
      case 'assign':
        return this.#assign(statement.targets, statement.values, inside);
      case 'callStatement':
        return `${this.#many(statement.call, inside)};`;
      case 'do':
        return `{ ${this.#block(statement.block, inside)} }`;
      case 'while':
        return `while (${this.#condition(statement.condition, inside)}) { ${this.#body('while', statement, statement.block, inside)} }`;
      case 'repeat': {
        const body = this.#block(statement.block, inside);
        return `for (;;) { ${body}\nif (${this.#condition(statement.condition, inside)}) break; }`;
      }
      case 'if': {
        const branches = statement.branches.map(
          ({ condition, block }) =>
            `if (${this.#condition(condition, inside)}) { ${this.#body('then', condition, block, inside)} }`,
        );
        const otherwise = this.#body('else', statement.branches, statement.otherwise ?? [], inside);
        return `${branches.join(' else ')}${otherwise === '' ? '' : ` else { ${otherwise} }`}`;
      }
      case 'numericFor':
        return this.#numericFor(statement, inside);
      case 'genericFor':
        return this.#genericFor(statement, inside);
      case 'return':
        return `return ${this.#all(statement.values, inside)};`;
      case 'break':
        return 'break;';
    }
  }

  /** Of a branch or a loop. */
  #body(what: string, near: unknown, block: readonly Statement[], inside: Inside): string {
    return this.#mark(what, near) + this.#block(block, inside);
  }

  #local({ locals, values }: Extract<Statement, { kind: 'local' }>, inside: Inside): string {
    if (locals.length === 1 && values.length === 1) {
      const value = this.#one(values[0]!, inside);
      return `let ${this.#name(locals[0]!)} = ${value};`;
    }
    const names = locals.map((local) => this.#name(local));
    if (values.length === 0) return `let ${names.join(', ')};`;
    const all = `all_${this.#lists++}`;
    return `const ${all} = ${this.#all(values, inside)}; let ${names.map((name, n) => `${name} = ${all}[${n}]`).join(', ')};`;
  }

  #assign(targets: readonly Target[], values: readonly Expression[], inside: Inside): string {
    if (targets.length === 1 && values.length === 1) return this.#store(targets[0]!, inside, values[0]!);
    // Where to is evaluated before what, and written from the last one to the first.
    const places = targets.map((target, n) =>
      target.kind === 'index'
        ? `const o${n} = ${this.#one(target.object, inside)}, k${n} = ${this.#one(target.key, inside)};`
        : '',
    );
    const writes = targets.map((target, n) =>
      target.kind === 'index'
        ? `$set(o${n}, k${n}, all[${n}], E[${this.#keep(target)}], ${target.line});`
        : this.#store(target, inside, `all[${n}]`),
    );
    return `{ ${places.join(' ')} const all = ${this.#all(values, inside)}; ${writes.toReversed().join(' ')} }`;
  }

  #store(target: Target, inside: Inside, value: Expression | string): string {
    const text = typeof value === 'string' ? value : this.#one(value, inside);
    if (isVariable(target)) return `${this.#name(localOf(target, inside))} = ${text};`;
    if (target.kind === 'global') return `${text}; $readOnly(${target.line});`;
    const [object, key] = [this.#one(target.object, inside), this.#one(target.key, inside)];
    return `$set(${object}, ${key}, ${text}, E[${this.#keep(target)}], ${target.line});`;
  }

  #numericFor(statement: Extract<Statement, { kind: 'numericFor' }>, inside: Inside): string {
    const { local, from, to, by, line } = statement;
    const bound = (expression: Expression, n: number) => `$bound(${this.#one(expression, inside)}, ${n}, ${line})`;
    const name = this.#name(local);
    const bounds = `const from = ${bound(from, 0)}, to = ${bound(to, 1)}, by = ${by ? bound(by, 2) : '1'};`;
    const goesOn = by ? 'by > 0 ? i <= to : i >= to' : 'i <= to';
    const body = this.#body('for', statement, statement.block, inside);
    return `{ ${bounds} for (let i = from; ${goesOn}; i += by) { let ${name} = i; ${body} } }`;
  }

  #genericFor(statement: Extract<Statement, { kind: 'genericFor' }>, inside: Inside): string {
    const { locals, values, line } = statement;
    const body = this.#body('for', statement, statement.block, inside);
    const names = locals.map((local) => this.#name(local));
    const [first] = values;
    const isList = first?.kind === 'call' && first.callee.kind === 'global' && first.callee.name === 'ipairs';
    if (isList && first.args.length === 1 && names.length <= 2) {
      const table = `$list(${this.#one(first.args[0]!, inside)}, ${first.line})`;
      const [at = 'at', value = 'value'] = names;
      const next = `let ${at} = i, ${value} = table.get(i); if (${value} === undefined) break;`;
      return `{ const table = ${table}; for (let i = 1; ; i++) { ${next} ${body} } }`;
    }
    const start = `const [step, state, first] = ${this.#all(values, inside)}; let control = first;`;
    const next = `const results = $call(step, [state, control], ${line}, 'for iterator'); if (results[0] === undefined) break; control = results[0];`;
    return `{ ${start} for (;;) { ${next} let ${names.map((name, n) => `${name} = results[${n}]`).join(', ')}; ${body} } }`;
  }

  // --- Expressions ------------------------------------------------------------------------------------------------------

  #function(body: FunctionBody, around: Inside, isKnown: boolean): string {
    const inside = { body, around };
    const names = body.parameters.map((local) => this.#name(local));
    const text = this.#block(body.block, inside);
    if (isKnown) {
      const parameters = body.hasRest ? [...names, '...rest'] : names;
      return `(${parameters.join(', ')}) => { let t; ${text} return []; }`;
    }
    const rest = body.hasRest ? `const rest = args.slice(${names.length});` : '';
    const parameters = names.map((name, n) => `, ${name} = args[${n}]`).join('');
    return `(args) => { let t${parameters}; ${rest} ${text} return []; }`;
  }

  /** What JavaScript takes for true or false. */
  #condition(expression: Expression, inside: Inside): string {
    if (expression.kind === 'binary') {
      const { operator, left, right } = expression;
      const rightSide = () => this.#marked(operator, right, this.#condition(right, inside));
      if (operator === 'and') return `(${this.#condition(left, inside)} && ${rightSide()})`;
      if (operator === 'or') return `(${this.#condition(left, inside)} || ${rightSide()})`;
      if (operator === '==' || operator === '~=' || operator in COMPARING) return this.#one(expression, inside);
    }
    if (expression.kind === 'unary' && expression.operator === 'not')
      return `!${this.#condition(expression.operand, inside)}`;
    return `$isTrue(${this.#one(expression, inside)})`;
  }

  #one(expression: Expression, inside: Inside): string {
    switch (expression.kind) {
      case 'constant': {
        const { value } = expression;
        return typeof value === 'string' ? JSON.stringify(value) : String(value);
      }
      case 'local':
      case 'upvalue':
        return this.#name(localOf(expression, inside));
      case 'global':
        return `$global(globals.${expression.name}, '${expression.name}', ${expression.line})`;
      case 'index':
        return `$get(${this.#one(expression.object, inside)}, ${this.#one(expression.key, inside)}, E[${this.#keep(expression)}], globals)`;
      case 'call':
      case 'method':
        return `${this.#many(expression, inside)}[0]`;
      case 'rest':
        return 'rest[0]';
      case 'first':
        return this.#one(expression.value, inside);
      case 'function':
        return this.#function(expression.body, inside, false);
      case 'table':
        return this.#table(expression, inside);
      case 'unary':
        return this.#unary(expression, inside);
      case 'binary':
        return this.#binary(expression, inside);
    }
  }

  #table({ list, fields, line }: Extract<Expression, { kind: 'table' }>, inside: Inside): string {
    const pairs = fields.map(({ key, value }) => `[${this.#one(key, inside)}, ${this.#one(value, inside)}]`);
    return `$table(${this.#all(list, inside, true)}, [${pairs.join(', ')}], ${line})`;
  }

  #unary(expression: Extract<Expression, { kind: 'unary' }>, inside: Inside): string {
    if (expression.operator === 'not') return `!${this.#condition(expression.operand, inside)}`;
    const operand = this.#one(expression.operand, inside);
    return `$${expression.operator === '-' ? 'minus' : 'length'}(${operand}, E[${this.#keep(expression)}])`;
  }

  #binary(expression: Extract<Expression, { kind: 'binary' }>, inside: Inside): string {
    const { operator } = expression;
    const [left, right] = [this.#one(expression.left, inside), this.#one(expression.right, inside)];
    const rightSide = () => this.#marked(operator, expression, right);
    if (operator === 'and')
      return `($isTrue(t = ${left}) ? ${rightSide()} : ${this.#marked('not and', expression, 't')})`;
    if (operator === 'or')
      return `($isTrue(t = ${left}) ? ${this.#marked('not or', expression, 't')} : ${rightSide()})`;
    if (operator === '==') return `(${left} === ${right})`;
    if (operator === '~=') return `(${left} !== ${right})`;
    const name = NUMERIC[operator] ?? COMPARING[operator] ?? (operator === '..' ? 'join' : 'other');
    return `$${name}(${left}, ${right}, E[${this.#keep(expression)}])`;
  }

  /** All values of a list, as an array. @param isOwn nobody else holds the array */
  #all(expressions: readonly Expression[], inside: Inside, isOwn = false): string {
    const listed = this.#listed(expressions, inside);
    return expressions.length === 1 && !isOwn && listed.startsWith('...') ? listed.slice(3) : `[${listed}]`;
  }

  /** With commas. The last one may stand for several values. */
  #listed(expressions: readonly Expression[], inside: Inside): string {
    const last = expressions.at(-1);
    const texts = expressions.map((one) => {
      if (one !== last || !['call', 'method', 'rest'].includes(one.kind)) return this.#one(one, inside);
      return `...${one.kind === 'rest' ? 'rest' : this.#many(one as Call, inside)}`;
    });
    return texts.join(', ');
  }

  #many(call: Call, inside: Inside): string {
    const { line } = call;
    if (call.kind === 'method') {
      const [object, args] = [this.#one(call.object, inside), this.#all(call.args, inside)];
      return `$method(${object}, '${call.name}', ${args}, E[${this.#keep(call.object)}], globals, ${line})`;
    }
    const { callee } = call;
    if (isVariable(callee)) {
      const local = localOf(callee, inside);
      if (this.#known.has(local)) return `${this.#name(local)}(${this.#listed(call.args, inside)})`;
    }
    return `$call(${this.#one(callee, inside)}, ${this.#all(call.args, inside)}, ${line}, E[${this.#keep(callee)}].name)`;
  }
}
