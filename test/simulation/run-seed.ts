import { planOf } from './plan.js';
import type { Configuration, Plan } from './plan.js';
import { firstLines, Simulation } from './simulation.js';
import type { Result } from './simulation.js';
import { namelessStacks } from './stacks.js';

export interface RunOptions {
  /** The folder with `dist` and `node_modules`. */
  readonly project: string;
  /** Only these faults of the plan, by their numbers. */
  readonly faults?: readonly number[] | undefined;
  readonly stop?: boolean;
  /** Simulated ms at which the run ends, whatever is left. */
  readonly untilMs?: number | undefined;
  /** As simply as can be: each process with modules of its own, each event in a turn of the real event loop. */
  readonly slow?: boolean;
  readonly print?: ((line: string) => void) | undefined;
}

let current: Simulation | undefined;
let isListening = false;

/** A rejection that nobody handles ends a real process: here it is a violation. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  namelessStacks();
  process.on('unhandledRejection', (error) => current?.oracle.report('unhandled', firstLines(error)));
}

export async function runPlan(
  plan: Plan,
  { project, faults, stop, untilMs, slow, print }: RunOptions,
): Promise<Result> {
  listen();
  const chosen = faults ? { ...plan, faults: plan.faults.filter(({ n }) => faults.includes(n)) } : plan;
  const simulation = new Simulation(chosen, project, slow ?? false);
  simulation.engine.print = print;
  current = simulation;
  try {
    return await simulation.run({ stop: stop ?? false, untilMs, slow: slow ?? false });
  } finally {
    current = undefined;
  }
}

export function runSeed(seed: number, given: Partial<Configuration>, options: RunOptions): Promise<Result> {
  return runPlan(planOf(seed, given), options);
}
