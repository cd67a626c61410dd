import { tokenize } from './lua.lexer.js';
import { parseNumber } from './lua.numbers.js';
import { Scope } from './lua.scope.js';
import type { Call, Expression, FunctionBody, Statement, Target } from './lua.syntax.js';
import { TokenReader } from './lua.token-reader.js';

/** How tightly an operator holds what is left and right of it; `..` and `^` group to the right. */
const PRIORITY: Record<string, readonly [left: number, right: number]> = {
  or: [1, 1],
  and: [2, 2],
  '<': [3, 3],
  '>': [3, 3],
  '<=': [3, 3],
  '>=': [3, 3],
  '~=': [3, 3],
  '==': [3, 3],
  '..': [5, 4],
  '+': [6, 6],
  '-': [6, 6],
  '*': [7, 7],
  '/': [7, 7],
  '%': [7, 7],
  '^': [10, 9],
};
const UNARY_PRIORITY = 8;

/** @throws LuaError with Redis' words for a script that does not compile */
export function parse(source: string): FunctionBody {
  return new Parser(tokenize(source)).script();
}

class Parser extends TokenReader {
  #scope = new Scope(undefined);

  script(): FunctionBody {
    this.#scope.hasRest = true;
    const block = this.#block();
    this.expect('<eof>');
    return { parameters: [], hasRest: true, upvalues: [], block };
  }

  #scoped<T>(read: () => T): T {
    this.#scope.blocks.push([]);
    const result = read();
    this.#scope.blocks.pop();
    return result;
  }

  #inner(): Statement[] {
    return this.#scoped(() => this.#block());
  }

  #block(): Statement[] {
    const statements: Statement[] = [];
    while (!['end', 'else', 'elseif', 'until', '<eof>'].includes(this.token.kind)) {
      const statement = this.#statement();
      this.accept(';');
      statements.push(statement);
      if (statement.kind === 'return' || statement.kind === 'break') break;
    }
    return statements;
  }

  #statement(): Statement {
    const { kind, line } = this.token;
    switch (kind) {
      case 'local':
        this.take();
        return this.accept('function') ? this.#localFunction() : this.#local();
      case 'if':
        return this.#if();
      case 'while': {
        this.take();
        const condition = this.#expression();
        return { kind: 'while', condition, block: this.#doBlock() };
      }
      case 'do':
        return { kind: 'do', block: this.#doBlock() };
      case 'for':
        return this.#for(line);
      case 'repeat':
        this.take();
        return this.#scoped(() => {
          const block = this.#block();
          this.expect('until');
          return { kind: 'repeat', block, condition: this.#expression() }; // It sees the locals of the block.
        });
      case 'function':
        return this.#functionStatement(line);
      case 'return': {
        this.take();
        const ends = ['end', 'else', 'elseif', 'until', '<eof>', ';'].includes(this.token.kind);
        return { kind: 'return', values: ends ? [] : this.#expressions() };
      }
      case 'break':
        this.take();
        return { kind: 'break' };
      default:
        return this.#assignmentOrCall();
    }
  }

  #doBlock(): Statement[] {
    this.expect('do');
    const block = this.#inner();
    this.expect('end');
    return block;
  }

  #local(): Statement {
    const names = [this.name()];
    while (this.accept(',')) names.push(this.name());
    const values = this.accept('=') ? this.#expressions() : [];
    return { kind: 'local', values, locals: names.map((name) => this.#scope.declare(name)) };
  }

  #localFunction(): Statement {
    const local = this.#scope.declare(this.name());
    return { kind: 'localFunction', local, body: this.#functionBody(false) };
  }

  #functionStatement(line: number): Statement {
    this.take();
    let target = this.#variable(this.name(), line);
    let isMethod = false;
    while (!isMethod && (this.token.kind === '.' || this.token.kind === ':')) {
      isMethod = this.take().kind === ':';
      target = { kind: 'index', object: target, key: { kind: 'constant', value: this.name() }, line };
    }
    return { kind: 'assign', targets: [target], values: [{ kind: 'function', body: this.#functionBody(isMethod) }] };
  }

  #if(): Statement {
    const branches = [];
    do {
      this.take();
      const condition = this.#expression();
      this.expect('then');
      branches.push({ condition, block: this.#inner() });
    } while (this.token.kind === 'elseif');
    const otherwise = this.accept('else') ? this.#inner() : undefined;
    this.expect('end');
    return { kind: 'if', branches, otherwise };
  }

  #for(line: number): Statement {
    this.take();
    const names = [this.name()];
    if (this.accept('=')) {
      const from = this.#expression();
      this.expect(',');
      const to = this.#expression();
      const by = this.accept(',') ? this.#expression() : undefined;
      return this.#scoped(() => {
        const local = this.#scope.declare(names[0]!);
        return { kind: 'numericFor', local, from, to, by, block: this.#doBlock(), line };
      });
    }
    while (this.accept(',')) names.push(this.name());
    this.expect('in');
    const values = this.#expressions();
    return this.#scoped(() => {
      const locals = names.map((name) => this.#scope.declare(name));
      return { kind: 'genericFor', locals, values, block: this.#doBlock(), line };
    });
  }

  #assignmentOrCall(): Statement {
    const first = this.#suffixed();
    if (first.kind === 'call' || first.kind === 'method') return { kind: 'callStatement', call: first };
    const targets = [this.#asTarget(first)];
    while (this.accept(',')) targets.push(this.#asTarget(this.#suffixed()));
    this.expect('=');
    return { kind: 'assign', targets, values: this.#expressions() };
  }

  #asTarget(expression: Expression): Target {
    const { kind } = expression;
    if (kind === 'local' || kind === 'upvalue' || kind === 'global' || kind === 'index') return expression;
    return this.fail('syntax error');
  }

  #expressions(): Expression[] {
    const list = [this.#expression()];
    while (this.accept(',')) list.push(this.#expression());
    return list;
  }

  #expression(limit = 0): Expression {
    const { kind, line } = this.token;
    let left: Expression;
    if (kind === 'not' || kind === '-' || kind === '#') {
      this.take();
      left = { kind: 'unary', operator: kind, operand: this.#expression(UNARY_PRIORITY), line };
    } else {
      left = this.#simple();
    }
    for (;;) {
      const { kind: operator, line: at } = this.token;
      const priority = PRIORITY[operator];
      if (!priority || priority[0] <= limit) return left;
      this.take();
      left = { kind: 'binary', operator, left, right: this.#expression(priority[1]), line: at };
    }
  }

  #simple(): Expression {
    const { kind, text } = this.token;
    switch (kind) {
      case 'number':
        this.take();
        return { kind: 'constant', value: parseNumber(text)! };
      case 'string':
        this.take();
        return { kind: 'constant', value: text };
      case 'nil':
        this.take();
        return { kind: 'constant', value: undefined };
      case 'true':
      case 'false':
        this.take();
        return { kind: 'constant', value: kind === 'true' };
      case '...':
        if (!this.#scope.hasRest) this.fail("cannot use '...' outside a vararg function");
        this.take();
        return { kind: 'rest' };
      case '{':
        return this.#table();
      case 'function':
        this.take();
        return { kind: 'function', body: this.#functionBody(false) };
      default:
        return this.#suffixed();
    }
  }

  #suffixed(): Expression {
    const { line } = this.token;
    let value: Expression;
    if (this.accept('(')) {
      value = { kind: 'first', value: this.#expression() };
      this.expect(')');
    } else {
      if (this.token.kind !== '<name>') this.fail('unexpected symbol');
      value = this.#variable(this.name(), line);
    }
    for (;;) {
      const { kind, line: at } = this.token;
      if (kind === '.') {
        this.take();
        value = { kind: 'index', object: value, key: { kind: 'constant', value: this.name() }, line: at };
      } else if (kind === '[') {
        this.take();
        const key = this.#expression();
        this.expect(']');
        value = { kind: 'index', object: value, key, line: at };
      } else if (kind === ':') {
        this.take();
        const name = this.name();
        value = { kind: 'method', object: value, name, args: this.#arguments(), line: at } satisfies Call;
      } else if (kind === '(' || kind === 'string' || kind === '{') {
        value = { kind: 'call', callee: value, args: this.#arguments(), line: at } satisfies Call;
      } else {
        return value;
      }
    }
  }

  #arguments(): Expression[] {
    if (this.token.kind === 'string') return [{ kind: 'constant', value: this.take().text }];
    if (this.token.kind === '{') return [this.#table()];
    this.expect('(');
    const args = this.token.kind === ')' ? [] : this.#expressions();
    this.expect(')');
    return args;
  }

  #variable(name: string, line: number): Target {
    const local = this.#scope.find(name);
    if (local) return { kind: 'local', local };
    const index = this.#scope.upvalue(name);
    return index === undefined ? { kind: 'global', name, line } : { kind: 'upvalue', index };
  }

  #table(): Expression {
    const { line } = this.expect('{');
    const list: Expression[] = [];
    const fields: { key: Expression; value: Expression }[] = [];
    while (this.token.kind !== '}') {
      if (this.accept('[')) {
        const key = this.#expression();
        this.expect(']');
        this.expect('=');
        fields.push({ key, value: this.#expression() });
      } else if (this.token.kind === '<name>' && this.following.kind === '=') {
        const key: Expression = { kind: 'constant', value: this.name() };
        this.take();
        fields.push({ key, value: this.#expression() });
      } else {
        list.push(this.#expression());
      }
      if (!this.accept(',') && !this.accept(';')) break;
    }
    this.expect('}');
    return { kind: 'table', list, fields, line };
  }

  #functionBody(isMethod: boolean): FunctionBody {
    const scope = (this.#scope = new Scope(this.#scope));
    const parameters = isMethod ? [scope.declare('self')] : [];
    this.expect('(');
    while (this.token.kind !== ')') {
      if (this.accept('...')) {
        scope.hasRest = true;
        break;
      }
      parameters.push(scope.declare(this.name()));
      if (!this.accept(',')) break;
    }
    this.expect(')');
    const block = this.#block();
    this.expect('end');
    this.#scope = scope.outer!;
    return { parameters, hasRest: scope.hasRest, upvalues: scope.upvalues, block };
  }
}
