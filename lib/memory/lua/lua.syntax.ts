/** A local variable: where it lives in the frame of its function, and whether a function inside keeps it alive in a cell. */
export interface Local {
  name: string;
  slot: number;
  captured: boolean;
}

/** Where a function finds a cell when it is made: in the frame around it, or among the cells that function was given. */
export type Upvalue = { from: 'frame'; local: Local } | { from: 'cells'; index: number };

export interface FunctionBody {
  parameters: Local[];
  hasRest: boolean;
  upvalues: Upvalue[];
  block: Statement[];
}

export type Target =
  | { kind: 'local'; local: Local }
  | { kind: 'upvalue'; index: number }
  | { kind: 'global'; name: string; line: number }
  | { kind: 'index'; object: Expression; key: Expression; line: number };

export type Call =
  | { kind: 'call'; callee: Expression; args: Expression[]; line: number }
  | { kind: 'method'; object: Expression; name: string; args: Expression[]; line: number };

export type Expression =
  | Target
  | Call
  | { kind: 'constant'; value: undefined | boolean | number | string }
  | { kind: 'rest' }
  | { kind: 'function'; body: FunctionBody }
  | { kind: 'binary'; operator: string; left: Expression; right: Expression; line: number }
  | { kind: 'unary'; operator: string; operand: Expression; line: number }
  | { kind: 'table'; list: Expression[]; fields: { key: Expression; value: Expression }[]; line: number }
  /** In parentheses: of several values the first. */
  | { kind: 'first'; value: Expression };

export type Statement =
  | { kind: 'local'; locals: Local[]; values: Expression[] }
  | { kind: 'localFunction'; local: Local; body: FunctionBody }
  | { kind: 'assign'; targets: Target[]; values: Expression[] }
  | { kind: 'callStatement'; call: Call }
  | { kind: 'do'; block: Statement[] }
  | { kind: 'while'; condition: Expression; block: Statement[] }
  | { kind: 'repeat'; condition: Expression; block: Statement[] }
  | { kind: 'if'; branches: { condition: Expression; block: Statement[] }[]; otherwise: Statement[] | undefined }
  | {
      kind: 'numericFor';
      local: Local;
      from: Expression;
      to: Expression;
      by: Expression | undefined;
      block: Statement[];
      line: number;
    }
  | { kind: 'genericFor'; locals: Local[]; values: Expression[]; block: Statement[]; line: number }
  | { kind: 'return'; values: Expression[] }
  | { kind: 'break' };
