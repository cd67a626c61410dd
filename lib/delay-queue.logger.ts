import { ConsoleLogger, Logger } from '@nestjs/common';
import { inspect } from 'node:util';
import { stackOf, summarizeError } from './job/error-record.js';
import type { ErrorRecord } from './job/error-record.js';
import { guarded, warnOnce } from './user-code.js';

/** The job that a line is about, for loggers that write more than text. Never a payload. */
export interface LogFields {
  readonly queue?: string;
  readonly id?: string;
  readonly attempt?: number;
  readonly latenessMs?: number;
}

type Level = 'log' | 'warn' | 'error' | 'debug';
type Target = Record<Level, (...args: unknown[]) => unknown>;

/**
 * How a logger takes the fields of a line.
 *
 * - `pino` (by nestjs-pino): an object before the text, and an error in it as `err`
 * - `fields`: a plain object after the text, Nest's way from 12 on
 * - `console`: the same, but people read it: a stack in the object has its lines
 * - `text`: Nest 11 would print such an object as a line of its own
 */
export type LogStyle = 'pino' | 'fields' | 'console' | 'text';

const NEST_STYLE: LogStyle = 'stringifyParams' in ConsoleLogger.prototype ? 'fields' : 'text';

/**
 * All that the library logs goes through here. The logger is the application's, and is called while a run ends, from
 * the callbacks of connections, at boot: an error that it throws, or rejects with, must not end any of that. It is
 * reported once, as a warning of the process.
 */
export class DelayQueueLogger {
  readonly #nest: Logger;

  constructor(private readonly context: string) {
    this.#nest = new Logger(context);
  }

  /** That of an instance of the module. */
  static of(instance: string): DelayQueueLogger {
    return new DelayQueueLogger(instance === 'default' ? 'DelayQueue' : `DelayQueue:${instance}`);
  }

  log(message: string, fields?: LogFields): void {
    this.#write('log', message, fields);
  }

  /** @param error adds its stack; the text says already what it is */
  warn(message: string, fields?: LogFields, error?: ErrorRecord): void {
    this.#write('warn', message, fields, error);
  }

  /** @param error adds its stack; the text says already what it is */
  error(message: string, fields?: LogFields, error?: ErrorRecord): void {
    this.#write('error', message, fields, error);
  }

  debug(message: string, fields?: LogFields): void {
    this.#write('debug', message, fields);
  }

  /** Worth asking before a line is made that few applications want to see. */
  get isDebug(): boolean {
    return guarded(() => Logger.isLevelEnabled('debug'), false, tell);
  }

  #write(level: Level, message: string, fields?: LogFields, error?: ErrorRecord): void {
    guarded(
      () => {
        const target = ownTarget();
        const style = target ? (isPino(target) ? 'pino' : NEST_STYLE) : nestStyle();
        const args = logArguments(style, level, message, fields, error);
        // Nest ignores the return value of a logger, so a promise that rejects would end the process.
        return target ? target[level](...args, this.context) : this.#nest[level](args[0], ...args.slice(1));
      },
      undefined,
      tell,
    );
  }
}

/** The arguments for a logger, without the context that Nest adds. */
export function logArguments(
  style: LogStyle,
  level: string,
  message: string,
  fields?: LogFields,
  error?: ErrorRecord,
): unknown[] {
  if (style === 'pino') {
    if (!fields && !error) return [message];
    return [{ ...fields, ...(error && { err: error }) }, message];
  }
  const stack = error && stackOf(error);
  const objects = style !== 'text' && fields ? [fields] : [];
  // Where Nest and its loggers look for the stack of an error; undefined is how Nest says that there is none.
  if (level === 'error') return [message, ...objects, ...(stack || objects.length === 0 ? [stack] : [])];
  if (!stack) return [message, ...objects];
  if (style === 'text') return [`${message}\n${stack}`];
  return [message, { ...fields, stack: style === 'console' ? new ReadableStack(stack) : stack }];
}

/** Nest's console shows objects by `inspect()`, which makes one line of a text: a stack would be a page without a break. */
class ReadableStack {
  readonly #stack: string;

  constructor(stack: string) {
    this.#stack = stack;
  }

  [inspect.custom](): string {
    return `\n${this.#stack}\n`;
  }

  /** For a logger that a subclass of Nest's console hands it on to. */
  toJSON(): string {
    return this.#stack;
  }

  toString(): string {
    return this.#stack;
  }
}

/** A buffer does not say which logger will have its lines, and a method of the application may do with them what it likes. */
function nestStyle(): LogStyle {
  const { staticInstanceRef: logger, isBufferAttached } = Logger as unknown as {
    staticInstanceRef?: { readonly warn?: unknown; readonly options?: { readonly json?: boolean } };
    isBufferAttached?: boolean;
  };
  const isConsole = !isBufferAttached && logger?.warn === ConsoleLogger.prototype.warn && !logger.options?.json;
  return NEST_STYLE === 'fields' && isConsole ? 'console' : NEST_STYLE;
}

/** A logger that is not Nest's, and not called through a buffer or with levels of Nest's. */
function ownTarget(): Target | undefined {
  const { staticInstanceRef, isBufferAttached } = Logger as unknown as {
    staticInstanceRef?: object;
    isBufferAttached?: boolean;
  };
  if (!staticInstanceRef || isBufferAttached) return undefined;
  if (staticInstanceRef instanceof ConsoleLogger || staticInstanceRef instanceof Logger) return undefined;
  return staticInstanceRef as Target;
}

/** The `Logger` of nestjs-pino, which merges an object that comes first and drops one that comes later. */
function isPino(target: object): boolean {
  const { contextName, logger } = target as { contextName?: unknown; logger?: { assign?: unknown } };
  return typeof contextName === 'string' && typeof logger?.assign === 'function';
}

function tell(thrown: unknown): void {
  warnOnce(
    'logger',
    `The logger of the application fails, which concerns no job: ${summarizeError(thrown)}. Said once.`,
  );
}
