import { createNoopMeter } from '@opentelemetry/api';
import type { Meter } from '@opentelemetry/api';

/** Of this process: an SDK gives all who ask for the library's meter the same one. */
const inUse = new WeakSet<Meter>();

/**
 * Two modules that observe the same series would overwrite each other's values, and no SDK says so.
 *
 * @returns whether the meter was free; without an SDK it always is
 */
export function takeMeter(meter: Meter): boolean {
  if (meter === createNoopMeter()) return true;
  if (inUse.has(meter)) return false;
  inUse.add(meter);
  return true;
}

export function freeMeter(meter: Meter): void {
  inUse.delete(meter);
}
