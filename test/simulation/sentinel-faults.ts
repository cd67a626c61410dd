import type { Inject } from './injection.js';

/** As long as an old master may go on before the Sentinels reach it. */
const LONGEST_SPLIT_MS = 8_000;

export const SENTINEL_INJECTIONS: Readonly<
  Record<'masterFails' | 'masterChanges' | 'sentinelsAway' | 'sentinelsLie', Inject>
> = {
  // The Sentinels see that it is gone, and a replica takes over. Then it comes back, as a replica.
  masterFails({ simulation, fault, took, allTroubles }) {
    const ms = 200 + 4_000 * fault.a * fault.a;
    if (!simulation.sentinels?.fail(ms, Math.floor(fault.c * 40), fault.b)) return;
    allTroubles(ms + 3_000);
    took();
  },
  // Somebody asks for it: the old master goes on until it is told, for whoever does not hear of the change.
  masterChanges({ simulation, fault, took, allTroubles }) {
    // Not by **, whose last digit differs between versions of V8.
    const ms = 100 + LONGEST_SPLIT_MS * fault.a * fault.a * fault.a;
    if (!simulation.sentinels?.change(ms, Math.floor(fault.c * 40), fault.b)) return;
    allTroubles(ms + 3_000);
    took();
  },
  sentinelsAway({ simulation, fault, took, allTroubles }) {
    const ms = 500 + 8_000 * fault.a;
    const count = 1 + Math.floor(fault.b * 3);
    simulation.sentinels?.away(Math.floor(fault.c * 3), count, ms, fault.b * 10 - Math.floor(fault.b * 10) < 0.4, took);
    allTroubles(ms);
  },
  sentinelsLie({ simulation, fault, took, allTroubles }) {
    const ms = 500 + 5_000 * fault.a;
    const choice = fault.b * 10 - Math.floor(fault.b * 10);
    simulation.sentinels?.lie(Math.floor(fault.c * 3), 1 + Math.floor(fault.b * 3), ms, choice, took);
    allTroubles(ms);
  },
};
