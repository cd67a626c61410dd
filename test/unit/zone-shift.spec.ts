import { describe, expect, it } from '@jest/globals';
import { timesOf } from '../../lib/recurring/occurrence-times.js';
import type { ScheduleDefinition, ScheduleRecord, ScheduleState } from '../../lib/recurring/schedule-record.js';
import { planByNewerZones } from '../../lib/recurring/zone-shift.js';

const DAY = 86_400_000;
const TODAY = Date.UTC(2027, 2, 1);
/** Of that day, or of another one. */
const at = (time: string, days = 0) => Date.parse(`2027-03-01T${time}:00Z`) + days * DAY;
const NOW = at('15:30');

/** Of which older zone data have made these times. The expression is that of the newer ones, in UTC. */
function recordOf(
  cron: string,
  state: Pick<ScheduleState, 'recent'> & Partial<ScheduleState>,
  definition: Partial<ScheduleDefinition> = {},
): ScheduleRecord {
  return {
    definition: {
      cron,
      timeZone: 'Etc/GMT',
      everyMs: null,
      from: null,
      until: null,
      limit: null,
      jitterMs: 0,
      missed: 'once',
      graceMs: 60_000,
      most: 1_000,
      overlap: 'skip',
      expiresInMs: null,
      place: null,
      ...definition,
    },
    state: {
      revision: 1,
      anchor: 0,
      last: state.recent.at(-1)!,
      made: 7,
      zoneData: '1999a',
      owner: 'call',
      paused: false,
      ...state,
    },
    content: '',
  };
}

const plan = async (record: ScheduleRecord) => {
  const times = await timesOf({ cron: record.definition.cron!, timeZone: 'Etc/GMT' }, '');
  const { occurrences, ...rest } = await planByNewerZones('s', record, times, NOW);
  return { ...rest, made: occurrences.map(({ at, due }) => [at, due]) };
};

describe('by newer zone data the occurrence of today', () => {
  it.each(['once', 'skip', 'all'] as const)(
    'whose new time is over happens now, and not twice: missed %s',
    async (missed) => {
      const {
        made,
        state,
        missed: counted,
      } = await plan(recordOf('0 15 * * *', { recent: [at('16:00', -1), at('16:00')] }, { missed }));
      expect(made).toEqual([
        [at('15:00'), NOW],
        [at('15:00', 1), at('15:00', 1)],
      ]);
      expect(counted).toBeUndefined();
      expect(state.made).toBe(8);
    },
  );

  it('that has happened does not happen again at a later time', async () => {
    const { made, state } = await plan(recordOf('0 16 * * *', { recent: [at('15:00'), at('15:00', 1)] }));
    expect(made).toEqual([]);
    expect(state).toMatchObject({ last: at('16:00'), over: [at('16:00')] });
  });

  it('that is yet to come is moved, to an earlier time and to a later one', async () => {
    for (const hour of ['16', '18']) {
      const { made } = await plan(recordOf(`0 ${hour} * * *`, { recent: [at('17:00', -1), at('17:00')] }));
      expect(made).toEqual([[at(`${hour}:00`), at(`${hour}:00`)]]);
    }
  });

  it('and of the days behind a change of clocks that newer data do not know', async () => {
    // Yesterday both agreed.
    const { made } = await plan(recordOf('0 18 * * *', { recent: [at('18:00', -1), at('17:00')] }));
    expect(made).toEqual([[at('18:00'), at('18:00')]]);
  });

  it('is told from its neighbours an hour away', async () => {
    // 16:00 has happened as 15:00.
    const { made, state } = await plan(recordOf('0 16,17 * * *', { recent: [at('15:00'), at('16:00')] }));
    expect(made).toEqual([]);
    expect(state.over).toEqual([at('16:00')]);
    const earlier = await plan(recordOf('0 14,15 * * *', { recent: [at('15:00'), at('16:00')] }));
    expect(earlier.made[0]).toEqual([at('15:00'), NOW]);
  });

  it('every two hours happens as often as before', async () => {
    const { made } = await plan(recordOf('0 1-23/2 * * *', { recent: [at('14:00'), at('16:00')] }));
    expect(made).toEqual([[at('17:00'), at('17:00')]]);
  });

  it('every hour stays', async () => {
    const { made } = await plan(recordOf('0 * * * *', { recent: [at('15:00'), at('16:00')] }));
    expect(made).toEqual([[at('16:00'), at('16:00')]]);
  });

  it('that was cancelled stays so', async () => {
    const record = recordOf('0 15 * * *', { recent: [at('16:00', -1), at('16:00')], over: [at('16:00')] });
    const { made } = await plan(record);
    expect(made).toEqual([[at('15:00', 1), at('15:00', 1)]]);
  });

  it('that was the last one which was made, and has happened, does not happen again', async () => {
    const { made, state, tick } = await plan(recordOf('0 16 * * *', { recent: [at('15:00', -1), at('15:00')] }));
    expect({ made, last: state.last, tick }).toEqual({ made: [], last: at('16:00'), tick: NOW });
    // A pause ended then.
    const resumed = await plan(recordOf('0 16 * * *', { recent: [at('15:00', -1)], last: at('15:10') }));
    expect(resumed.state.last).toBe(at('15:10'));
  });
});

it('without a time near the old one all is computed anew from now on', async () => {
  const { made } = await plan(recordOf('0 0 15 * *', { recent: [TODAY + 2 * DAY] }));
  expect(made).toEqual([[TODAY + 14 * DAY, TODAY + 14 * DAY]]);
});
