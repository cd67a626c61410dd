// Without @jest/globals: the `expect` that @types/jest declares and jest puts into every file.
import { DelayQueueHarness, delayQueueMatchers } from '../../lib/testing/index.js';
import '../../lib/testing/jest.js';

expect.extend(delayQueueMatchers);

describe('the global expect()', () => {
  it('knows the matchers, and their options', async () => {
    const jobs: unknown = new Date();
    const asked: Promise<void>[] = [
      expect(jobs as DelayQueueHarness).toHaveEnqueued('mail.send', { payload: 1, delay: '3h' }),
      expect(jobs as DelayQueueHarness).not.toHaveCompleted('mail.send', { id: 'A' }),
      // @ts-expect-error -- there is no such reason
      expect(jobs as DelayQueueHarness).toHaveDeadLettered('mail.send', { reason: 'tired' }),
    ];
    for (const one of asked) await expect(one).rejects.toThrow(/give expect\(\) the DelayQueueHarness/);
  });
});
