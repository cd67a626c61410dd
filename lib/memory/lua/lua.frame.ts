import type { Value } from './lua.values.js';

/** A variable that outlives its block, because a function inside uses it. */
export interface Cell {
  value: Value;
}

/** One call of a function of the script. */
export interface Frame {
  readonly slots: (Value | Cell)[];
  readonly cells: readonly Cell[];
  readonly rest: Value[];
  readonly globals: Globals;
}

export type Globals = Readonly<Record<string, Value>>;

export type Evaluate = (frame: Frame) => Value;
export type EvaluateAll = (frame: Frame) => Value[];
