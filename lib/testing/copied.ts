import { isPlainObject } from '../job/option-rules.js';

/**
 * A payload as its handler gets it: what that changes in it is not what was enqueued. Of what a codec has made, such as a Date or an
 * instance of a class, the thing itself.
 */
export function copied(value: unknown, known = new Map<unknown, unknown>()): unknown {
  const isList = Array.isArray(value);
  if (!isList && !isPlainObject(value)) return value;
  if (known.has(value)) return known.get(value);
  const copy: object = isList ? [] : Object.create(Object.getPrototypeOf(value));
  known.set(value, copy);
  for (const [key, one] of Object.entries(value)) {
    // Not by assignment, which means something else for `__proto__`.
    Object.defineProperty(copy, key, {
      value: copied(one, known),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return copy;
}
