import { sum } from '../../inspection/queue-counts.js';
import { PURGED_STATES } from '../../inspection/shard-calls.js';
import type { PurgedState } from '../../inspection/shard-calls.js';
import { oneOf } from '../../job/option-rules.js';
import type { PauseResponse, PurgeResponse } from '../api.js';
import type { InstanceView } from '../instance-view.js';
import { badRequest, DashboardProblem } from '../problems.js';
import type { Act } from './act.js';

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

/** How many jobs of these states a purge would remove, over all shards. */
async function purgeable({ calls }: InstanceView, queue: string, states: readonly PurgedState[]): Promise<number> {
  const shards = await calls.purgeable(queue);
  return sum(shards.map((shard) => sum(states.map((state) => shard[state]))));
}

export const purge: Act = async (view, queue, body) => {
  const [given, confirm, dryRun] = [body.any('states'), body.optionalText('confirm'), body.flag('dryRun')];
  const most = body.most();
  body.end();
  if (given !== undefined && !Array.isArray(given)) throw badRequest('body: `states` must be an array.');
  const states = [...new Set(given ?? ['waiting', 'dead'])].map((state) =>
    oneOf(state, PURGED_STATES, 'purge({ states })'),
  );
  if (!dryRun && confirm !== queue) {
    throw new DashboardProblem(409, 'DASHBOARD_NOT_CONFIRMED', `Type the name of the queue, "${queue}", to purge it.`);
  }
  // Counted before, so that an error of it never stands for jobs that are gone.
  const found = await purgeable(view, queue, states);
  let removed = dryRun ? found : 0;
  const shards = [...view.context.stores(queue).keys()];
  for (const state of dryRun ? [] : states) removed += await view.calls.purge(queue, state, shards, most - removed);
  const answer: PurgeResponse = { removed, remaining: dryRun ? found : Math.max(0, found - removed) };
  return { answer, count: removed, outcomes: { removed }, dryRun };
};
