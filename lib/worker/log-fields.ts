import { ConsoleLogger } from '@nestjs/common';

/** What a line about a job is about, for loggers that write more than text. Never a payload. */
export interface LogFields {
  readonly queue?: string;
  readonly id?: string;
  readonly attempt?: number;
  readonly latenessMs?: number;
}

// From 12 on Nest's logger takes a plain object after the message for fields of the line. That of 11 would print it as a
// second line of its own.
const HAS_FIELDS = 'stringifyParams' in ConsoleLogger.prototype;

/** To be spread after the message: `logger.warn(message, ...logFields({ queue, id }))`. */
export function logFields(fields: LogFields, supported = HAS_FIELDS): [] | [LogFields] {
  return supported ? [fields] : [];
}
