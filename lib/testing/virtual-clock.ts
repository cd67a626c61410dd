import type { StoreClock } from '../memory/memory.store.js';

/** Stands still until it is moved. */
export class VirtualClock implements StoreClock {
  constructor(private ms: number) {}

  now(): number {
    return this.ms;
  }

  set(ms: number): void {
    this.ms = ms;
  }
}
