import { expect, it } from '@jest/globals';
import { getDelayQueueToken, getQueueToken } from '../../lib/index.js';

it('two queues of two instances had one injection token, so one of them got the jobs of the other', () => {
  expect(getQueueToken('c', 'a:b')).not.toBe(getQueueToken('b:c', 'a'));
  expect(getQueueToken('DelayQueueProducer', 'a')).not.toBe(getDelayQueueToken('queue:a'));
});
