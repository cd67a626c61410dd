import type { BulkActPage } from '../../inspection/bulk-results.js';
import type { JobChoice, NewTimes } from '../../inspection/bulk-options.js';
import { isPlainObject } from '../../job/option-rules.js';
import type { ActOutcome, JobsActResponse } from '../api.js';
import type { Fields } from '../fields.js';
import { badRequest } from '../problems.js';
import { countedBy } from './act.js';
import type { Act, Acted } from './act.js';

/** Outcomes that are a change. */
const CHANGED = ['rescheduled', 'cancelled', 'moved'];

interface Asked {
  readonly choice: JobChoice;
  readonly options: { cursor?: string; dryRun: boolean };
}

/** Which jobs: the library checks the ids and times. */
function askedBy(body: Fields): Asked {
  const [ids, range, cursor] = [body.any('ids'), body.any('range'), body.optionalText('cursor')];
  const options = { dryRun: body.flag('dryRun'), ...(cursor !== undefined && { cursor }) };
  if ((ids === undefined) === (range === undefined)) throw badRequest('body: give either `ids` or `range`.');
  if (ids !== undefined) return { choice: { ids: ids as string[] }, options };
  if (!isPlainObject(range)) throw badRequest('body: `range` must be { from, to }, of which one may be left out.');
  return { choice: range as JobChoice, options };
}

function acted(page: BulkActPage<ActOutcome>, dryRun: boolean): Acted {
  const answer: JobsActResponse = {
    results: page.results.map(({ id, outcome, state, dueAt }) => ({
      id,
      outcome,
      ...(state && { state }),
      ...(dueAt && { dueAt: dueAt.getTime() }),
    })),
    ...(page.cursor !== undefined && { cursor: page.cursor }),
  };
  const outcomes = countedBy(page.results);
  const count = CHANGED.reduce((total, outcome) => total + (outcomes[outcome] ?? 0), 0);
  return { answer, count, outcomes, dryRun };
}

export const runNow: Act = async ({ inspector }, queue, body) => {
  const { choice, options } = askedBy(body);
  body.end();
  return acted(await inspector.bulk.runNow(queue, choice, options), options.dryRun);
};

export const reschedule: Act = async ({ inspector }, queue, body) => {
  const { choice, options } = askedBy(body);
  const [to, spread] = [body.any('to'), body.any('spread')];
  body.end();
  if (!isPlainObject(to)) throw badRequest('body: `to` must be { at }, { delay } or { by }.');
  if ('spread' in to) throw badRequest('body: `spread` stands beside `to`.');
  const times = { ...to, ...(spread !== undefined && { spread }) } as NewTimes;
  return acted(await inspector.bulk.reschedule(queue, choice, times, options), options.dryRun);
};

export const cancel: Act = async ({ inspector }, queue, body) => {
  const { choice, options } = askedBy(body);
  const running = body.flag('running');
  body.end();
  return acted(await inspector.bulk.cancel(queue, choice, { ...options, running }), options.dryRun);
};

export const move: Act = async ({ inspector }, queue, body) => {
  const { choice, options } = askedBy(body);
  const target = body.text('target');
  body.end();
  return acted(await inspector.bulk.move(queue, choice, target, options), options.dryRun);
};
