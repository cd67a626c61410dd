import { inspect } from 'node:util';
import { within } from '../time-and-randomness.js';
import type { ErrorDescription } from '../job/error-record.js';
import { inflate } from '../job/compression.js';
import type { Envelope } from '../job/envelope.js';
import type { Payloads } from '../job/payloads.js';
import type { ErrorText, PayloadText } from './api.js';

/** The job whose payload is to be shown. */
export interface ShownJob {
  readonly instance: string;
  readonly queue: string;
  /** Of a schedule its own. */
  readonly id: string;
}

/** What is shown of a payload: all, nothing, or what a function makes of it. Undefined hides this one. */
export type ShownPayloads = 'show' | 'hide' | ((payload: unknown, job: ShownJob) => unknown);

/** Of a payload, or what a codec made of it. */
const TEXT_MAX = 256 * 1_024;
const PREVIEW_MAX = 200;
/** A function of the application that never answers would keep the page waiting for ever. */
const PATIENCE_MS = 5_000;
const FAILED = 'The function `payloads` of the application failed, so it is not shown. The log says why.';
/** Values in one payload. What has more, or holds itself, is shown briefly: a few references can make billions of values. */
const MOST_NODES = 100_000;
const DEEPEST = 100;
const SHOWN = {
  depth: 8,
  breakLength: 100,
  maxArrayLength: 1_000,
  maxStringLength: 10_000,
  customInspect: false,
} as const;
const SHOWN_BRIEFLY = { ...SHOWN, depth: 2, maxArrayLength: 100, maxStringLength: 1_000 } as const;

/** Takes out of answers what their readers must not see. Here and not in the browser: what is hidden never leaves. */
export class PrivateParts {
  constructor(
    readonly payloads: ShownPayloads,
    readonly errors: 'show' | 'hide',
    private readonly fault: (what: string, thrown: unknown, payload: unknown) => void,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  get hidesContext(): boolean {
    return this.payloads === 'hide';
  }

  async payload(
    { body, mark }: Pick<Envelope, 'body' | 'mark'>,
    codecs: Payloads,
    job: ShownJob,
  ): Promise<PayloadText> {
    const { payloads } = this;
    if (payloads === 'hide') return { kind: 'hidden' };
    let payload: unknown;
    try {
      payload = codecs.decode(body, mark);
      if (payloads === 'show') {
        if (mark === undefined) return cut('json', body);
        // Compressed JSON: what is stored has all digits of its numbers, what was parsed has not.
        if (mark.codec === undefined) return cut('json', inflate(body, mark.inflated!).toString());
        return textOf(payload);
      }
    } catch (error) {
      // The error of a codec may quote what it could not read.
      const { name } = error as Error;
      return { kind: 'undecodable', problem: `This process cannot read it (${name}).` };
    }
    return this.#byFunction(payloads, payload, job);
  }

  /** Of a payload that was decoded already; undefined when that failed. */
  async decoded(payload: unknown, job: ShownJob): Promise<PayloadText> {
    const { payloads } = this;
    if (payloads === 'hide') return { kind: 'hidden' };
    if (payload === undefined) return { kind: 'undecodable', problem: 'This process cannot read it.' };
    return payloads === 'show' ? textOf(payload) : this.#byFunction(payloads, payload, job);
  }

  async #byFunction(
    show: (payload: unknown, job: ShownJob) => unknown,
    payload: unknown,
    job: ShownJob,
  ): Promise<PayloadText> {
    try {
      const asked = (async () => show(payload, job))();
      const shown = await within(
        this.patienceMs,
        asked,
        () => new Error(`it did not answer within ${this.patienceMs} ms`),
      );
      return shown === undefined ? { kind: 'hidden' } : textOf(shown);
    } catch (thrown) {
      this.fault('payloads() of DelayQueueDashboardModule', thrown, payload);
      return { kind: 'hidden', problem: FAILED };
    }
  }

  error(record: (ErrorDescription & { at?: number }) | undefined, withStack: boolean): ErrorText | undefined {
    if (!record) return undefined;
    const { name, message, stack, at, cause, errors } = record;
    const time = at !== undefined && Number.isFinite(at) ? { at } : {};
    if (this.errors === 'hide') return { name, message: '', ...time };
    return {
      name,
      message,
      ...(withStack && stack !== undefined && { stack }),
      ...time,
      ...(cause && { cause: this.error(cause, withStack)! }),
      ...(errors && errors.length > 0 && { errors: errors.map((one) => this.error(one, withStack)!) }),
    };
  }
}

/** The beginning, for lists. */
export function previewOf(payload: PayloadText): string | undefined {
  return 'text' in payload ? payload.text.slice(0, PREVIEW_MAX) : undefined;
}

/** As JSON where that is possible; a codec, or the application's function, may give what is none. */
function textOf(value: unknown): PayloadText {
  const nodes = { left: MOST_NODES };
  if (isOfJson(value, nodes)) return cut('json', JSON.stringify(value));
  return cut('text', inspect(value, nodes.left > 0 ? SHOWN : SHOWN_BRIEFLY));
}

/** Is it JSON and nothing more? A Map would become `{}`, a BigInt throws, and what holds itself has no end. */
function isOfJson(value: unknown, nodes: { left: number }, depth = 0): boolean {
  if (--nodes.left <= 0 || depth > DEEPEST) return false;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.every((one) => isOfJson(one, nodes, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return !('toJSON' in value) && Object.values(value).every((one) => isOfJson(one, nodes, depth + 1));
}

function cut(kind: 'json' | 'text', text: string): PayloadText {
  if (text.length <= TEXT_MAX) return { kind, text };
  return { kind: 'text', text: text.slice(0, TEXT_MAX), of: text.length };
}
