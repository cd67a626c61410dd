import { Forecaster } from '../../history/forecast.js';
import { queueNameOf } from '../../job/queue-definition.js';
import type { ForecastResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

/** It looks at an hour of minutes and at several timelines. */
const VALID_MS = 10_000;

export async function readForecast(view: InstanceView, query: Fields): Promise<ForecastResponse> {
  const queue = queueNameOf(query.text('queue'));
  query.end();
  return view.shared.value(`forecast ${queue}`, VALID_MS, async () => {
    const { at, rate, basis, clearAt, peaks, ...others } = await new Forecaster(view.history, queue).forecast({});
    return {
      at: at.getTime(),
      ...(rate !== undefined && { rate }),
      ...(basis && { basis }),
      ...(clearAt && { clearAt: clearAt.getTime() }),
      ...others,
      peaks: peaks.map(({ from, until, latestDueAt, ...peak }) => ({
        ...peak,
        from: from.getTime(),
        until: until.getTime(),
        latestDueAt: latestDueAt.getTime(),
      })),
    };
  });
}
