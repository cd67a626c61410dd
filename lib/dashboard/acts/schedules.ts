import { parseInstant } from '../../job/duration.js';
import { backfillSize } from '../../recurring/backfill-times.js';
import { asItWas, decodeRecord } from '../../recurring/schedule-record.js';
import type { ScheduleRecord } from '../../recurring/schedule-record.js';
import { findSchedule } from '../../recurring/schedule-search.js';
import { assertScheduleId } from '../../recurring/schedule-options.js';
import type { ScheduleActResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';
import { notFound } from '../problems.js';
import type { Act, Acted } from './act.js';

function missing(queue: string, id: string) {
  return notFound(`Queue "${queue}" has no schedule "${id}".`);
}

function idOf(body: Fields): string {
  const id = body.text('id');
  assertScheduleId(id, 'body: `id`');
  return id;
}

function acted(answer: ScheduleActResponse, outcome: string, count: number, dryRun: boolean): Acted {
  return { answer, count, outcomes: { [outcome]: count }, dryRun };
}

/** For dry runs. @throws DashboardProblem without such a schedule */
async function recordOf({ context }: InstanceView, queue: string, id: string): Promise<ScheduleRecord> {
  const { stored } = await findSchedule(context, 'schedule', queue, id);
  const record = stored && decodeRecord(stored.text);
  if (record) return asItWas(record);
  throw missing(queue, id);
}

function pausing(paused: boolean): Act {
  return async (view, queue, body) => {
    const [id, dryRun] = [idOf(body), body.flag('dryRun')];
    body.end();
    if (dryRun) {
      const { state } = await recordOf(view, queue, id);
      return acted({ id, paused: state.paused }, 'kept', 0, dryRun);
    }
    const { producer } = view;
    const { outcome } = await (paused ? producer.pauseSchedule(queue, id) : producer.resumeSchedule(queue, id));
    if (outcome === 'notFound') throw missing(queue, id);
    return acted({ id, paused }, outcome, outcome === 'kept' ? 0 : 1, dryRun);
  };
}

export const pauseSchedule = pausing(true);
export const resumeSchedule = pausing(false);

export const trigger: Act = async (view, queue, body) => {
  const [id, dryRun] = [idOf(body), body.flag('dryRun')];
  body.end();
  if (dryRun) {
    await recordOf(view, queue, id);
    return acted({ id }, 'triggered', 1, dryRun);
  }
  const job = await view.producer.triggerSchedule(queue, id);
  if (job === undefined) throw missing(queue, id);
  return acted({ id, job }, 'triggered', 1, dryRun);
};

export const backfill: Act = async (view, queue, body) => {
  const [id, dryRun] = [idOf(body), body.flag('dryRun')];
  const from = parseInstant(body.required('from', body.number('from')), 'body: `from`');
  const to = parseInstant(body.required('to', body.number('to')), 'body: `to`');
  body.end();
  const made = dryRun
    ? await backfillSize(view.context, queue, id, from, to)
    : await view.producer.backfillSchedule(queue, id, { from, to });
  if (made === undefined) throw missing(queue, id);
  return acted({ id, made }, 'made', made, dryRun);
};
