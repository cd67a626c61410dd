import { sum } from '../../inspection/queue-counts.js';
import { oneOf } from '../../job/option-rules.js';
import type { PauseResponse, PurgeResponse } from '../api.js';
import type { InstanceView } from '../instance-view.js';
import { badRequest, DashboardProblem } from '../problems.js';
import type { Act } from './act.js';

/** Of one call. */
const MOST = 1_000;
const STATES = ['waiting', 'dead', 'completed'] as const;
type Purged = (typeof STATES)[number];

function switching(change: (view: InstanceView, queue: string) => Promise<void>): Act {
  return async (view, queue, body) => {
    const dryRun = body.flag('dryRun');
    body.end();
    if (!dryRun) await change(view, queue);
    const { paused, publishingPaused } = await view.inspector.counts(queue);
    const answer: PauseResponse = { queue, paused, publishingPaused };
    return { answer, count: 0, outcomes: {}, dryRun };
  };
}

export const pause = switching(({ inspector }, queue) => inspector.pause(queue));
export const resume = switching(({ inspector }, queue) => inspector.resume(queue));
export const pausePublishing = switching(({ inspector }, queue) => inspector.pausePublishing(queue));
export const resumePublishing = switching(({ inspector }, queue) => inspector.resumePublishing(queue));

/** Jobs of these states, over all shards. */
async function held({ calls }: InstanceView, queue: string, states: readonly Purged[]): Promise<number> {
  const shards = await calls.counts(queue);
  return sum(
    shards.map(
      ({ delayed, due, dead, completed }) =>
        (states.includes('waiting') ? delayed + due : 0) +
        (states.includes('dead') ? dead : 0) +
        (states.includes('completed') ? completed : 0),
    ),
  );
}

export const purge: Act = async (view, queue, body) => {
  const [given, confirm, dryRun] = [body.any('states'), body.optionalText('confirm'), body.flag('dryRun')];
  body.end();
  if (given !== undefined && !Array.isArray(given)) throw badRequest('body: `states` must be an array.');
  const states = [...new Set(given ?? ['waiting', 'dead'])].map((state) => oneOf(state, STATES, 'purge({ states })'));
  let removed = 0;
  if (dryRun) {
    removed = await held(view, queue, states);
  } else {
    if (confirm !== queue) {
      throw new DashboardProblem(
        409,
        'DASHBOARD_NOT_CONFIRMED',
        `Type the name of the queue, "${queue}", to purge it.`,
      );
    }
    const shards = view.context.stores(queue).map((_, shard) => [shard, undefined] as const);
    for (const state of states) {
      const letter = state === 'waiting' ? 'w' : state === 'dead' ? 'x' : 'c';
      removed += (await view.calls.remove(queue, letter, shards, MOST - removed)).removed;
    }
  }
  const answer: PurgeResponse = { removed, remaining: dryRun ? removed : await held(view, queue, states) };
  return { answer, count: removed, outcomes: { removed }, dryRun };
};
