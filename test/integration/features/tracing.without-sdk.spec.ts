import { expect, it } from '@jest/globals';
import { trace } from '@opentelemetry/api';
import { DelayQueueTracingModule } from '../../../lib/tracing/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

it('Tracing without an SDK runs all jobs, stores nothing with them and makes no span', async () => {
  const spans: unknown[] = [];
  const { producer, inspector } = await here.start({
    imports: [DelayQueueTracingModule],
    providers: [
      handlerClass(
        'quiet',
        (_, job) => {
          spans.push(trace.getActiveSpan()?.isRecording());
          if (job.attempt === 1) throw new Error('no luck');
        },
        { backoff: () => 1 },
      ),
      handlerClass('batches', () => {}, { batch: { size: 2 } }),
    ],
  });
  await producer.enqueue('quiet', {}, { id: 'later', delay: '1h' });
  expect(await here.world.redis.hget(here.world.key('quiet', 'jobs'), 'later')).toMatch(/^1-[,-z]{14}\n\{\}$/);
  await producer.runNow('quiet', 'later');
  await producer.enqueueMany('batches', [{ payload: 1 }, { payload: 2 }]);
  await eventually(async () => expect(await inspector.totals('quiet')).toMatchObject({ completed: 1, failed: 1 }));
  await eventually(async () => expect(await inspector.totals('batches')).toMatchObject({ completed: 2 }));
  expect(spans).not.toContain(true);
});
