import { parentPort, workerData } from 'node:worker_threads';
import type { Plan } from './plan.js';
import { runPlan } from './run-seed.js';
import type { Result } from './simulation.js';

/** A plan that may break the rule. */
export interface Trial {
  readonly plan: Plan;
  /** Simulated ms after which nothing is expected any more. */
  readonly untilMs: number;
}

const { project, rule } = workerData as { project: string; rule: string };

parentPort!.on('message', (trial: Trial) => {
  const tell = (result: Result | undefined) => parentPort!.postMessage(result);
  tried(trial).then(tell, () => tell(undefined));
});

/** @returns undefined when the rule holds */
async function tried({ plan, untilMs }: Trial): Promise<Result | undefined> {
  const result = await runPlan(plan, { project, stop: true, untilMs });
  return result.violations.some((violation) => violation.rule === rule) ? result : undefined;
}
