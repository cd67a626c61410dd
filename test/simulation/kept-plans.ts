import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { UNBOUNDED } from './bounds.js';
import { UNLIMITED } from './limits.js';
import type { Configuration, Plan } from './plan.js';

/**
 * What was found is kept as a plan, not as a seed: a seed draws something else as soon as the drawing changes. A file
 * `plans/NAME.json` of this folder.
 */
export interface KeptPlan {
  /** What went wrong, in a sentence or two. */
  readonly what: string;
  /** The rule that the library still breaks; left out once it is mended. */
  readonly breaks?: string;
  readonly plan: Plan;
}

function folder(project: string): string {
  return path.join(project, 'test', 'simulation', 'plans');
}

/** What plans did not say when the first of them were kept. */
const CAME_LATER: Partial<Configuration> = {
  queues: 0,
  restMs: 0,
  nights: 0,
  pullMost: 1,
  batchSize: 5,
  batchWaitMs: 50,
  burst: 0,
  burstWorkMs: 0,
  timeouts: 0,
  updates: 0,
  transfers: 0,
  moved: true,
  reshards: [],
  older: false,
  cluster: false,
  durable: 0,
  replicas: 0,
  persistence: 'everysec',
  forGood: [],
  weather: [],
  schedules: 0,
  ...UNBOUNDED,
  ...UNLIMITED,
  traits: [],
};

export function keptNames(project: string): string[] {
  return readdirSync(folder(project))
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .toSorted();
}

/** @param name of a kept plan, or the path of a file that ends with `.json` */
export function readPlan(project: string, name: string): KeptPlan {
  const file = name.endsWith('.json') ? name : path.join(folder(project), `${name}.json`);
  const kept = JSON.parse(readFileSync(file, 'utf8')) as KeptPlan;
  const { plan } = kept;
  return { ...kept, plan: { ...plan, configuration: { ...CAME_LATER, ...plan.configuration } } };
}

export function keepPlan(project: string, name: string, kept: KeptPlan): void {
  writeFileSync(path.join(folder(project), `${name}.json`), `${JSON.stringify(kept, undefined, 2)}\n`);
}

/** What broke a rule leaves its plan, so that it can be run when its seed draws something else. @returns the file */
export function leavePlan(project: string, plan: Plan, { rule, what }: { rule: string; what: string }): string {
  const left = path.join(project, 'dist-simulation', 'broken');
  mkdirSync(left, { recursive: true });
  const file = path.join(left, `${rule}-seed-${plan.seed}.json`);
  const kept: KeptPlan = { what, breaks: rule, plan };
  writeFileSync(file, `${JSON.stringify(kept)}\n`);
  return path.relative(project, file);
}
