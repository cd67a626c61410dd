import { computed, effect, signal } from '@preact/signals';
import type { MeResponse, QueueState, StateResponse } from '../api.js';
import { instance, route } from './route.js';
import { read, ServerProblem } from './server.js';
import { isPaused } from './settings.js';

// What all screens look at: who is asking, and the state of all queues, read every two seconds while the page is seen.

const EACH_MS = 2_000;
const TICK_MS = 1_000;

export const me = signal<MeResponse | undefined>(undefined);
export const state = signal<StateResponse | undefined>(undefined);
/** Why the last question had no answer. */
export const problem = signal<ServerProblem | undefined>(undefined);
/** `performance.now()` when Redis was last known to have answered what is shown. */
const readSince = signal<number | undefined>(undefined);
/** Moves each second, so that "in 3 s" does. */
export const tick = signal(0);
export const isHidden = signal(false);

/** By the clock of Redis, as far as the page knows it: that of this machine may be wrong. */
const clock = signal<{ at: number; since: number } | undefined>(undefined);

export const canWrite = computed(() => me.value?.level === 'write');

export const queues = computed<readonly QueueState[]>(() => state.value?.queues ?? []);

export const redisProblem = computed(() => {
  const redis = state.value?.redis;
  return redis && !redis.up ? redis.problem : undefined;
});

export function setClock(now: number): void {
  clock.value = { at: now, since: performance.now() };
}

/** Read inside a component, it draws the component anew each second. */
export function now(): number {
  void tick.value;
  const known = clock.peek();
  return known ? known.at + (performance.now() - known.since) : Date.now();
}

/** Ms since Redis was read; undefined where it never was. */
export function ageOfState(): number | undefined {
  void tick.value;
  return readSince.value === undefined ? undefined : performance.now() - readSince.value;
}

let tag: string | undefined;
let meIsOf: string | undefined;
let asked: AbortController | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Of the instance that is looked at: what there is to see differs between them. */
async function loadMe(signal: AbortSignal): Promise<void> {
  const of = instance.peek();
  if (me.peek() && of === meIsOf) return;
  me.value = (await read('me', {}, { signal })).fresh;
  meIsOf = of;
}

export async function loadState(): Promise<void> {
  clearTimeout(timer);
  asked?.abort();
  const question = (asked = new AbortController());
  try {
    await loadMe(question.signal);
    const answer = await read('state', {}, { tag, signal: question.signal });
    tag = answer.tag;
    if (answer.fresh) {
      const { now: at, ageMs } = (state.value = answer.fresh);
      if (at !== undefined) setClock(at);
      readSince.value = ageMs === undefined ? undefined : performance.now() - ageMs;
    } else if (state.value?.redis.up) {
      readSince.value = performance.now();
    }
    problem.value = undefined;
  } catch (error) {
    if (question.signal.aborted) return;
    problem.value = asProblem(error);
  }
  if (question === asked) schedule();
}

function schedule(): void {
  clearTimeout(timer);
  if (!isPaused.peek() && !isHidden.peek()) timer = setTimeout(() => void loadState(), EACH_MS);
}

export function asProblem(error: unknown): ServerProblem {
  return error instanceof ServerProblem ? error : new ServerProblem(String((error as Error).message), 0, 'PAGE');
}

/** What went wrong with an act, and whether it may have been done all the same. */
export function troubleText(error: unknown): string {
  const { message, maybeAccepted } = asProblem(error);
  return maybeAccepted ? `${message} It may have been done: look before you repeat it.` : message;
}

/** A page that nobody sees asks nothing; seen again it asks at once. */
export function followState(): void {
  isHidden.value = document.hidden;
  document.addEventListener('visibilitychange', () => (isHidden.value = document.hidden));
  effect(() => {
    const stands = isPaused.value || isHidden.value;
    if (stands) clearTimeout(timer);
    else void loadState();
  });
  let of = instance.value;
  effect(() => {
    if (route.value.params['instance'] === of) return;
    of = route.value.params['instance'];
    tag = undefined;
    state.value = undefined;
    void loadState();
  });
  setInterval(() => {
    if (!document.hidden) tick.value++;
  }, TICK_MS);
}
