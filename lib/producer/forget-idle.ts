/** How many queues a process remembers to have used, checked or named: an application may have one per customer. */
export const MOST_REMEMBERED = 1_000;
/** Of the oldest, to find one that is idle. */
const MOST_LOOKED_AT = 100;

/**
 * Makes room for one more: forgets the oldest that is idle. Sessions of it stay in Redis until they expire, because copies of calls may come
 * late.
 */
export function forgetIdle<Value>(remembered: Map<string, Value>, isIdle: (value: Value) => boolean): void {
  if (remembered.size < MOST_REMEMBERED) return;
  let looked = 0;
  for (const [name, value] of remembered) {
    if (isIdle(value)) return void remembered.delete(name);
    if (++looked === MOST_LOOKED_AT) return;
  }
}
