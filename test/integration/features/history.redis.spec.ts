import { describe, expect, it } from '@jest/globals';
import { DelayQueueHistory, DelayQueueHistoryModule } from '../../../lib/history/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();

describe('The forecast', () => {
  it.each(['evalsha', 'hgetall', 'zrange'])(
    'fails with an error of the library when the connection breaks at %s',
    async (name) => {
      const proxy = end(await Proxy.before(here.world.url));
      const { app, producer } = await here.start({
        imports: [DelayQueueHistoryModule],
        options: { consume: false, connection: proxy.url, commandTimeout: 500 },
      });
      const queue = `breaks-at-${name}`;
      await producer.enqueue(queue, 'ok', { delay: '1h' });
      const history = app.get(DelayQueueHistory);
      await history.forecast(queue); // Redis knows all scripts now.
      const sent = Buffer.from(`\r\n${name}\r\n`);
      let isAway = false;
      proxy.judge = (direction, chunk) => {
        isAway ||= direction === 'request' && chunk.includes(sent);
        return isAway ? 'cut' : 'pass';
      };
      await expect(history.forecast(queue)).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', retryable: true });
      expect(isAway).toBe(true);
    },
  );
});
