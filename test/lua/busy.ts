import type { ScriptName } from '../../lib/lua/scripts.js';
import { scheduleKeys } from '../../lib/redis/keys.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';

/** A shard with something in every key, and each script called so that it writes all that it can write. */
export class Busy {
  readonly peer: Peer;
  readonly session: TestSession;
  #claims: Record<string, number> = {};

  private constructor(readonly shard: Shard) {
    this.peer = shard.peer();
    this.session = new TestSession(shard);
  }

  static async on(shard: Shard): Promise<Busy> {
    const busy = new Busy(shard);
    await busy.#fill();
    return busy;
  }

  readonly calls: Record<ScriptName, () => Promise<unknown>> = {
    enqueue: () => {
      const [new_, replaced, dead, running] = ['new', 'delayed', 'dead', 'running'];
      const items = ['kd0 i9 9 9 99', new_, '\n1', 'pd0', replaced, '\n1', 'rd0', dead, '\n1', 'pd0', running, '\n1'];
      return this.session.call('enqueue', [0, ...items]);
    },
    cancel: () => this.session.call('cancel', [0, 'burst', 0]),
    reschedule: () => this.session.call('reschedule', [0, 'delayed', 'd', 0, 0]),
    cancelMany: () => this.session.call('cancelMany', [0, 1, 'burst', '', 'quarantined', '', 'running', '']),
    rescheduleMany: () =>
      this.session.call('rescheduleMany', [0, 0, 'delayed', 'd', 0, '', 'quarantined', 'b', 1, '', 'dead', 'a', 1, '']),
    select: () => this.shard.run('select', this.session.key, ['z', 0, '-', '-', '', 200]),
    update: () => this.session.call('update', [0, 'quarantined', '', '\n2']),
    signal: () => this.session.call('signal', [0, 'quarantined', '', '\n3']),
    requeueDead: () => this.session.call('requeueDead', [0, 0, 1, 0, -1, '', '', 0, 9, 9]),
    remove: () => this.session.call('remove', [0, 'w', 200, -1]),
    pause: () => this.shard.run('pause', this.session.key, [0]),
    pausePublishing: () => this.shard.run('pausePublishing', this.session.key, [1]),
    reserve: () =>
      this.session.call('reserve', [
        0,
        HOUR,
        9e9,
        'delayed',
        'quarantined',
        'plain',
        'running',
        'dead',
        'none',
        'left',
      ]),
    unreserve: () => this.session.call('unreserve', [0, this.#claims['held']!, 2, 'leaves', 'tried', 'stays', 'plain']),
    extend: () => this.session.call('extend', [0, this.#claims['running']!, 'running', HOUR]),
    leave: () => this.shard.run('leave', this.peer.session.key, [this.peer.name]),
    step: () => {
      const end = (id: string, settlement: Settlement) => [this.#claims[id]!, id, settlement] as const;
      return this.peer.step({
        settle: [
          end('ends', { verb: 'complete' }),
          end('followed', { verb: 'complete' }),
          end('fails', { verb: 'retry', delayMs: 0, error: '{}' }),
          end('dies', { verb: 'dead', reason: 'discarded', error: '{}', charge: true }),
        ],
        renew: [{ claim: this.#claims['running']! }],
        sweep: true,
        limit: 2,
        hasFreeSlots: true,
        refreshIdle: true,
        asksIsolation: true,
        deadLetters: { max: 1, maxAgeMs: HOUR },
        keepCompleted: { count: 1, ageMs: HOUR },
      });
    },
    get: () => this.shard.run('get', this.session.key, ['running']),
    list: () => this.shard.run('list', this.session.key, ['d', '-', '-', '-', '', 200, 1_000_000]),
    counts: () => this.shard.run('counts', this.session.key, []),
    timeline: () => this.shard.run('timeline', this.session.key, ['-', `+${HOUR}`, 9]),
    markShard: () => this.shard.run('markShard', this.session.key, ['3/8', '', '']),
    moveOut: () => this.shard.run('moveOut', this.session.key, ['', 1_000_000, 'dead', 'delayed', 'burst']),
    moveIn: () => {
      const [arriving, dead] = ['arriving', 'deadToo'];
      const rest = ['1', 'envelope', '1 0 0 0', 'retry\n{}', '9e12', '1', '', '', '9e12'];
      const kept = ['kept', '-', '', '', '', '', '', '', '1', '0\nenvelope', ''];
      return this.shard.run('moveIn', this.session.key, ['', arriving, 'd', ...rest, dead, 'x', ...rest, ...kept]);
    },
    moveOff: () => this.shard.run('moveOff', this.session.key, ['', 'dead', 'delayed', 'quarantined', 'burst']),
    adoptShard: () => this.shard.run('adoptShard', this.session.key, ['', 'pb', 'other', 1, 'enqueued', 3]),
    ticks: () => this.shard.run('ticks', this.session.key, [20, 2_000]),
    tick: () =>
      this.session.call('tick', [
        0,
        'daily',
        'record',
        'follows',
        1,
        2,
        '',
        1,
        1,
        3,
        1,
        '{daily}old',
        '{daily}new',
        1,
        'i9',
        '\n1',
      ]),
    unschedule: () => this.session.call('unschedule', [0, 'daily', 'record', '', 9e15, 0, '']),
    withdrawOccurrences: () =>
      this.session.call('withdrawOccurrences', [
        0,
        20,
        '-inf',
        '',
        1,
        'daily',
        'zzzzzzzzz',
        9e15,
        'zzzzzzzzz',
        '{daily}old',
        'running',
      ]),
    purgeWaiting: () => this.session.call('purgeWaiting', [0, 20, 20, '-inf', '', 0]),
    cancelOccurrences: () => this.session.call('cancelOccurrences', [0, 'daily', 20, '-inf', '', 1]),
    beginOccurrence: () =>
      this.shard.run('beginOccurrence', this.session.key, ['daily', 'running', this.#claims['running']!, 'm', 1]),
    zone: () => this.session.call('zone', [0, '2020a', 'delayed', 9e12]),
    zoned: () => this.shard.run('zoned', this.session.key, ['2026a', 0, '', 0, '']),
    unzone: () => this.shard.run('unzone', this.session.key, [20, '-inf', '', '{daily}gone', 9e12]),
    rezone: () => this.session.call('rezone', [0, '{daily}old', '1-\n1', HOUR * 1e6, HOUR * 1e6 + 1, '\n1', '']),
    schedulesOut: () => this.shard.run('schedulesOut', this.session.key, ['', 1_000_000, 'daily']),
    schedulesIn: () =>
      this.shard.run('schedulesIn', this.session.key, ['', 'other', '1', 'record', '{other}1', '1', '1', '', '', '1']),
    schedulesOff: () => this.shard.run('schedulesOff', this.session.key, ['', 'daily']),
    waitingOccurrences: () => this.shard.run('waitingOccurrences', this.session.key, ['{daily}old', 'running']),
    schedules: () => this.shard.run('schedules', this.session.key, ['', 200, '', '']),
    endShard: () => this.shard.run('endShard', this.session.key, ['', '-/4']),
  };

  async #fill(): Promise<void> {
    const { shard, peer } = this;
    const { producer, queue } = shard;
    const { redis } = shard.world;
    await this.#hold('leaves', 'tried', 'stays', 'left');
    for (const state of ['dead', 'quarantined', 'delayed'] as const) await shard.put(state, state);
    for (const id of ['running', 'ends', 'followed', 'fails', 'dies', 'expires']) {
      await producer.enqueue(queue, 1, { id });
      this.#claims[id] = await peer.take(id, { hasFreeSlots: true });
    }
    await producer.enqueue(queue, 2, { id: 'followed', onDuplicate: 'replace' });
    await shard.expire(this.#claims['expires']!);
    await producer.enqueue(queue, 1, { id: 'burst', maxWait: HOUR, uniqueFor: HOUR });
    await producer.enqueue(queue, 1, { id: 'plain' });
    const [schedules, ticks, zoned, pending] = scheduleKeys(shard.keys.fixed) as [string, string, string, string];
    await redis.hset(schedules, '{daily}', 'record', 'missed{daily}', 1, 'ahead{daily}', 2);
    await redis.zadd(ticks, 1, 'daily');
    await redis.zadd(pending, 1, 'daily');
    await redis.zadd(zoned, 1, 'delayed', 9e12, '{daily}old', 9e12, '{daily}gone');
    await redis.hset(shard.key('jobs'), '{daily}old', '1-\n1');
    await redis.zadd(shard.key('due'), HOUR * 1e6, '{daily}old');
    const now = await shard.now();
    // Overdue and told to nobody yet: whatever is written next must wake somebody.
    await redis.zadd(shard.key('due'), 'XX', now - 100, 'plain');
    await redis.zadd(shard.key('unique'), now - 1, 'forgotten');
    await redis.zadd(shard.key('completed'), now - 1, 'new', now - 2 * HOUR, 'old');
    await redis.hset(shard.key('history'), 'new', '\n1', 'old', '\n1');
    await redis.zadd(shard.key('idle'), now + 60_000, 'somebody', now - 60_000, 'dead process', now, peer.name);
    await shard.meta({ paused: 0, leader: `${peer.name} ${now + 5_000}`, wokenAt: 0 });
  }

  /** Jobs on their way to another queue; the last one's mover died. */
  async #hold(...ids: string[]): Promise<void> {
    const session = new TestSession(this.shard);
    for (const id of ids) await this.shard.put(id === 'tried' ? 'quarantined' : 'delayed', id);
    const holding = async (some: string[]) =>
      Number(String(await session.call('reserve', [0, HOUR, 9e9, ...some])).split(' ')[0]);
    this.#claims['held'] = await holding(ids.slice(0, -1));
    await this.shard.expire(await holding(ids.slice(-1)));
  }
}
