import { DevalueError, parse, stringify } from 'devalue';
import { PayloadError } from '../delay-queue.errors.js';
import { forgetPromise } from '../job/forget-promise.js';
import type { PayloadCodec } from '../job/payload-codec.js';

export interface DevalueCodecOptions {
  /** Stored with every job. Change it when `revivers` change what stored data means. Default `'devalue'`. */
  name?: string;
  /** Types of your own: name to a function that gives something truthy for such values, from which `revivers` makes one. */
  reducers?: Record<string, (value: any) => any>;
  /** What makes the values again, by the same names. */
  revivers?: Record<string, (value: any) => any>;
}

/**
 * A codec that keeps Date, Map, Set, BigInt, RegExp, URL, Temporal, typed arrays, `undefined`, NaN, Infinity, -0, cycles
 * and repeated references, as readable text. Functions, symbols, promises and class instances are refused with their
 * path, unless `reducers` know the class; a Buffer comes back as a Uint8Array.
 *
 *     DelayQueueModule.forRoot({ codec: devalueCodec() })
 */
export function devalueCodec(options: DevalueCodecOptions = {}): PayloadCodec<string> {
  const { name = 'devalue', reducers, revivers } = options;
  return Object.freeze({
    name,
    encode: (payload: unknown) => {
      try {
        return stringify(payload, reducers);
      } catch (error) {
        if (!(error instanceof DevalueError)) throw error;
        forgetPromise(error.value);
        throw new PayloadError(`payload${error.path}: ${error.message}.`, { cause: error });
      }
    },
    decode: (text: string) => parse(text, revivers) as unknown,
  });
}
