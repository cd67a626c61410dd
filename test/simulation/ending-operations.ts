import { FREE_KILLS } from './charge-rules.js';
import type { Configuration, Operation } from './plan.js';
import { rounded } from './random.js';
import type { Random } from './random.js';

/** What a death costs beside the lease: until the process is back, and another one takes the job from the quarantine. */
const KILL_MS = 6_000;

/** A killer is found after some deaths, of which each costs a lease. */
export function killersMs({ killers, attempts, leaseMs }: Configuration): number {
  return killers * (attempts + FREE_KILLS + 1) * (2 * leaseMs + KILL_MS);
}

/** Jobs that end their process. Nothing else is asked of them: the number of their runs is what is looked at. */
export function drawKillers(random: Random, { killers, faultsMs }: Configuration): Operation[] {
  return Array.from({ length: killers }, (_, i) => ({
    kind: 'enqueue',
    at: rounded(random.between(500, faultsMs / 2)),
    queue: 'jobs',
    id: `killer${i}`,
    delay: 0,
    run: { n: 2_000_000 + i, work: rounded(random.between(1, 200)), kills: true },
  }));
}

/** Late enough for what the faults left, and with time for the next one between two. */
export function drawDrains({ rolling, workers, faultsMs, mendingMs, calmMs }: Configuration): Operation[] {
  const begin = faultsMs + mendingMs;
  return Array.from({ length: rolling ? workers : 0 }, (_, worker) => ({
    kind: 'drain',
    at: rounded(begin + ((worker + 0.5) * calmMs) / workers),
    worker,
  }));
}
