import type { Local, Upvalue } from './lua.syntax.js';

/** The variables of one function while it is read. */
export class Scope {
  readonly upvalues: Upvalue[] = [];
  readonly #upvalueNames: { local: Local; index: number }[] = [];
  readonly blocks: Local[][] = [[]];
  slots = 0;
  hasRest = false;

  constructor(readonly outer: Scope | undefined) {}

  declare(name: string): Local {
    const local = { name, slot: this.slots++, captured: false };
    this.blocks.at(-1)!.push(local);
    return local;
  }

  find(name: string): Local | undefined {
    for (const block of this.blocks.toReversed()) {
      const found = block.findLast((local) => local.name === name);
      if (found) return found;
    }
    return undefined;
  }

  /** Index of the cell of a variable of a function around this one. */
  upvalue(name: string): number | undefined {
    if (!this.outer) return undefined;
    const local = this.outer.find(name);
    if (local) {
      local.captured = true;
      return this.#add(local, { from: 'frame', local });
    }
    const index = this.outer.upvalue(name);
    if (index === undefined) return undefined;
    return this.#add(this.outer.#localAt(index), { from: 'cells', index });
  }

  #localAt(index: number): Local {
    return this.#upvalueNames.find((known) => known.index === index)!.local;
  }

  #add(local: Local, upvalue: Upvalue): number {
    const known = this.#upvalueNames.find((one) => one.local === local);
    if (known) return known.index;
    const index = this.upvalues.push(upvalue) - 1;
    this.#upvalueNames.push({ local, index });
    return index;
  }
}
