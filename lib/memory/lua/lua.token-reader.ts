import type { Token } from './lua.lexer.js';
import { LuaError } from './lua.values.js';

/** Reads the tokens of a script one after the other. */
export class TokenReader {
  #at = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  protected get token(): Token {
    return this.tokens[this.#at]!;
  }

  /** The one behind it. */
  protected get following(): Token {
    return this.tokens[this.#at + 1]!;
  }

  protected take(): Token {
    return this.tokens[this.#at++]!;
  }

  protected accept(kind: string): boolean {
    if (this.token.kind !== kind) return false;
    this.#at++;
    return true;
  }

  protected expect(kind: string): Token {
    if (this.token.kind !== kind) this.fail(`'${kind}' expected`);
    return this.take();
  }

  protected fail(what: string): never {
    throw new LuaError(`${what} near '${this.token.text}'`, this.token.line);
  }

  protected name(): string {
    return this.expect('<name>').text;
  }
}
