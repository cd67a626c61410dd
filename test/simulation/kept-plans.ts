import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { UNBOUNDED } from './bounds.js';
import { UNLIMITED } from './limits.js';
import { DRAWN } from './simpler.js';
import type { Configuration, EnqueueOperation, Operation, Plan } from './plan.js';
import { WrongArgument } from './wrong-argument.js';

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

/** As the file has it: of the configuration what is not usual, and of the jobs of a bulk call what they do not share with it. */
interface StoredPlan extends Omit<KeptPlan, 'plan'> {
  readonly plan: Omit<Plan, 'configuration'> & { readonly configuration: Partial<Configuration> };
}

function folder(project: string): string {
  return path.join(project, 'test', 'simulation', 'plans');
}

/** What a plan need not say: what came when the first plans had been kept, and what only the drawing reads. No value here may ever change. */
const UNSAID: Partial<Configuration> = {
  ...DRAWN,
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
  const kept = storedIn(file);
  const { configuration, operations, ...plan } = kept.plan;
  const whole = { ...UNSAID, ...configuration } as Configuration;
  return { ...kept, plan: { ...plan, configuration: whole, operations: operations.map(withSharedPart) } };
}

function storedIn(file: string): StoredPlan {
  let kept: Partial<StoredPlan> | undefined;
  try {
    kept = JSON.parse(readFileSync(file, 'utf8')) as Partial<StoredPlan>;
  } catch {
    // Told below.
  }
  if (Array.isArray(kept?.plan?.operations) && Array.isArray(kept.plan.faults)) return kept as StoredPlan;
  throw new WrongArgument(`${file} is no plan of the simulator.`);
}

export function keepPlan(project: string, name: string, kept: KeptPlan): void {
  writeFileSync(path.join(folder(project), `${name}.json`), textOf(kept));
}

/** One line for each setting, operation and fault. */
function textOf({ plan, ...about }: KeptPlan): string {
  const said = Object.entries(plan.configuration).filter(([key, value]) => !isUnsaid(key, value));
  const settings = said.map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  const operations = plan.operations.map((operation) => JSON.stringify(withoutSharedPart(operation)));
  const faults = plan.faults.map((fault) => JSON.stringify(fault));
  const list = (lines: readonly string[], [open, close]: string) =>
    lines.length === 0 ? `${open}${close}` : `${open}\n      ${lines.join(',\n      ')}\n    ${close}`;
  const parts = [
    `"seed": ${plan.seed}`,
    `"configuration": ${list(settings, '{}')}`,
    `"operations": ${list(operations, '[]')}`,
    `"faults": ${list(faults, '[]')}`,
  ];
  const head = Object.entries(about).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},\n`);
  return `{\n${head.join('')}  "plan": {\n    ${parts.join(',\n    ')}\n  }\n}\n`;
}

function isUnsaid(key: string, value: unknown): boolean {
  return JSON.stringify(UNSAID[key as keyof Configuration]) === JSON.stringify(value);
}

function withoutSharedPart(operation: Operation): unknown {
  if (operation.kind !== 'bulk') return operation;
  const shared = sharedPartOf(operation);
  const isOwn = ([key, value]: [string, unknown]) => !(key in shared) || shared[key as keyof typeof shared] !== value;
  return { ...operation, jobs: operation.jobs.map((job) => Object.fromEntries(Object.entries(job).filter(isOwn))) };
}

function withSharedPart(operation: Operation): Operation {
  if (operation.kind !== 'bulk') return operation;
  return { ...operation, jobs: operation.jobs.map((job) => ({ ...sharedPartOf(operation), ...job })) };
}

function sharedPartOf({ at, queue }: Operation & { kind: 'bulk' }): Pick<EnqueueOperation, 'kind' | 'at' | 'queue'> {
  return { kind: 'enqueue', at, queue };
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
