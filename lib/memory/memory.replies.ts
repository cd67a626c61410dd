/** What a command answers. Texts hold one byte per character. */
export type Reply = number | string | null | Status | ReplyError | Reply[];

/** `+OK` and the like, which a script sees as a table and not as a text. */
export class Status {
  constructor(readonly text: string) {}
}

export const OK = new Status('OK');

/** An error that a Redis would answer; its message begins with the code. Named as ioredis names them. */
export class ReplyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ReplyError';
  }
}

export const SYNTAX = 'ERR syntax error';
export const NOT_AN_INTEGER = 'ERR value is not an integer or out of range';
export const NOT_A_FLOAT = 'ERR value is not a valid float';
