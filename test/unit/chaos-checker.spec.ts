import { describe, expect, it } from '@jest/globals';
import { check } from '../chaos/checker.js';
import { OVER } from '../chaos/history.js';
import type { GroupIndexes, HistoryEvent, Indexes, SettledJob } from '../chaos/history.js';
import { RULES } from '../chaos/rules.js';
import type { Rule } from '../chaos/rules.js';
import { digitsOf } from '../helpers/groups.js';

const LEASE = 2_000;
const NOTHING: Indexes = { due: [], running: [], quarantine: [], dead: [], jobs: [], followups: [] };

/** Writes a history by hand, one line per event; times are ms since its begin. */
class Story {
  events: HistoryEvent[] = [];
  #calls = 0;

  tell(p: string, at: number, event: object): this {
    this.events.push({ p, at, mono: at, ...event } as HistoryEvent);
    return this;
  }

  asks(
    at: number,
    what: string,
    id: string,
    details: { version?: string; due?: number; group?: string },
    answer?: object,
  ): this {
    const op = this.#calls++;
    this.tell('p1.1', at, { ev: 'asked', op, what, id, ...details });
    return answer ? this.tell('p1.1', at + 5, { op, ...answer }) : this;
  }

  enqueues(at: number, id: string, delay = 100, version = `${id}/1`): this {
    return this.asks(
      at,
      'enqueue',
      id,
      { version, due: at + delay },
      { ev: 'answered', outcome: 'created', state: 'delayed' },
    );
  }

  claims(p: string, at: number, token: number, id: string, due = at): this {
    return this.tell(p, at + 1, { ev: 'claimed', token, now: at, jobs: [[id, due, 0]] });
  }

  starts(p: string, at: number, token: number, id: string, version = `${id}/1`, maxAttempts = 2): this {
    return this.claims(p, at, token, id).tell(p, at + 2, {
      ev: 'start',
      id,
      token,
      version,
      attempt: 1,
      maxAttempts,
    });
  }

  ends(p: string, at: number, token: number, id: string, how: string, settled: [verb: string, value?: number]): this {
    this.tell(p, at, { ev: 'effect', id, token, how });
    return this.settles(p, at, [id, token, settled[0], settled[1] ?? 0]);
  }

  settles(p: string, at: number, job: SettledJob, lost: string[] = []): this {
    const step = this.#calls++;
    this.tell(p, at + 1, { ev: 'settleSent', step, jobs: [job] });
    return this.tell(p, at + 3, { ev: 'settleAnswer', step, lost });
  }

  /** A job from its call to its completion. */
  whole(id: string, at: number, token: number): this {
    return this.enqueues(at, id)
      .starts('w1.1', at + 100, token, id)
      .ends('w1.1', at + 120, token, id, 'ok', ['complete']);
  }

  store(at: number, indexes: Partial<Indexes>, keys?: [string, number][]): this {
    return this.tell('director', at, {
      ev: 'store',
      final: keys !== undefined,
      indexes: { ...NOTHING, ...indexes },
      keys,
    });
  }
}

/** A run in which all is well, with every kind of event that is no fault of the library. */
function goodStory(): Story {
  const story = new Story();
  story.tell('director', 0, { ev: 'planned', faults: { kill: 1, freeze: 1 } });
  story.whole('plain', 0, 1_000);
  // Killed in its handler, taken over.
  story.enqueues(1_000, 'orphan').starts('w2.1', 1_100, 2_000, 'orphan');
  story
    .tell('director', 1_200, { ev: 'fault', kind: 'kill', target: 'w2', begin: 1_200, end: 1_210, effect: true })
    .tell('director', 1_210, { ev: 'exit', of: 'w2.1', how: 'SIGKILL', asked: true });
  story.starts('w1.1', 3_100, 5_000, 'orphan').ends('w1.1', 3_150, 5_000, 'orphan', 'ok', ['complete']);
  // Frozen past its lease, taken over, refused.
  story.enqueues(4_000, 'frozen').starts('w3.1', 4_100, 6_000, 'frozen');
  story.tell('director', 4_200, { ev: 'fault', kind: 'freeze', target: 'w3', begin: 4_200, end: 7_300, effect: true });
  story.starts('w1.1', 6_100, 7_000, 'frozen').ends('w1.1', 6_200, 7_000, 'frozen', 'ok', ['complete']);
  story
    .tell('w3.1', 7_310, { ev: 'effect', id: 'frozen', token: 6_000, how: 'ok' })
    .settles('w3.1', 7_310, ['frozen', 6_000, 'complete', 0], ['frozen']);
  // Renewed while it ran for longer than its lease.
  story.enqueues(8_000, 'long').starts('w1.1', 8_100, 8_000, 'long');
  story.tell('w1.1', 9_010, { ev: 'renewed', sent: 9_000, tokens: [8_000], left: [] });
  story.ends('w1.1', 10_500, 8_000, 'long', 'ok', ['complete']);
  // Fails twice and dies; snoozes once and completes.
  story
    .enqueues(11_000, 'bad')
    .starts('w1.1', 11_100, 9_000, 'bad')
    .ends('w1.1', 11_110, 9_000, 'bad', 'failed', ['retry', 300]);
  story.starts('w1.1', 11_500, 9_500, 'bad').ends('w1.1', 11_510, 9_500, 'bad', 'failed', ['dead']);
  story.enqueues(12_000, 'snooze').starts('w1.1', 12_100, 10_000, 'snooze');
  story.ends('w1.1', 12_110, 10_000, 'snooze', 'snoozed', ['snooze', 300]);
  story.starts('w1.1', 12_500, 11_000, 'snooze').ends('w1.1', 12_510, 11_000, 'snooze', 'ok', ['complete']);
  // Replaced while it ran; moved; cancelled; refused; in doubt and never run.
  story.enqueues(13_000, 'twice').starts('w1.1', 13_100, 12_000, 'twice');
  const running = { ev: 'answered', outcome: 'replaced', state: 'running' };
  story.asks(13_110, 'enqueue', 'twice', { version: 'twice/2', due: 13_210 }, running);
  story.ends('w1.1', 13_150, 12_000, 'twice', 'ok', ['complete']);
  story.starts('w1.1', 13_300, 12_500, 'twice', 'twice/2').ends('w1.1', 13_310, 12_500, 'twice', 'ok', ['complete']);
  story.enqueues(14_000, 'moved', 100);
  story.asks(
    14_050,
    'reschedule',
    'moved',
    { due: 15_000 },
    { ev: 'answered', outcome: 'rescheduled', state: 'delayed' },
  );
  story.starts('w1.1', 15_010, 14_000, 'moved').ends('w1.1', 15_020, 14_000, 'moved', 'ok', ['complete']);
  story.enqueues(16_000, 'gone', 5_000);
  story.asks(16_100, 'cancel', 'gone', {}, { ev: 'answered', outcome: 'cancelled', state: 'delayed' });
  story.asks(
    17_000,
    'enqueue',
    'refused',
    { version: 'refused/1', due: 17_000 },
    { ev: 'failed', code: 'ERR_DQ_REDIS_FULL', maybe: false },
  );
  story.asks(
    17_100,
    'enqueue',
    'doubt',
    { version: 'doubt/1', due: 17_100 },
    { ev: 'failed', code: 'ERR_DQ_UNAVAILABLE', maybe: true },
  );
  // Lost and got back by the same process: one run, two tokens.
  story.enqueues(18_000, 'back').starts('w1.1', 18_100, 18_000, 'back').claims('w1.1', 20_200, 20_000, 'back');
  story.ends('w1.1', 20_300, 18_000, 'back', 'ok', ['snooze']);
  story.events.splice(-2); // told under the token that it has by then
  story.settles('w1.1', 20_300, ['back', 20_000, 'complete', 0]);
  // Made again under its id, with fewer attempts, which it uses up.
  story.enqueues(18_000, 'anew').starts('w4.1', 18_150, 18_500, 'anew');
  story.ends('w4.1', 18_160, 18_500, 'anew', 'ok', ['complete']).enqueues(18_300, 'anew', 100, 'anew/2');
  story.starts('w4.1', 18_450, 18_600, 'anew', 'anew/2', 1).ends('w4.1', 18_460, 18_600, 'anew', 'failed', ['dead']);
  story.enqueues(21_000, 'waits', 60_000);
  story.tell('w2.1', 900, { ev: 'session', key: 'prefix:{work}:session:dead.1' });
  story.store(16_050, { due: ['gone'], jobs: ['gone'] });
  story.store(22_000, { due: ['waits'], ...STORED, jobs: ['waits', 'bad', 'anew'] }, [
    ['{work}:due', -1],
    ['{work}:jobs', -1],
    ['{work}:session:dead.1', 500_000],
    ['queues', -1],
  ]);
  return story;
}

const at = digitsOf;
/** What is stored of a queue with one group, `acme`, in good order. */
const GROUPS: GroupIndexes = {
  now: 25_900,
  needs: 'limits',
  due: { 'a-later': 90_000 },
  grouped: { [`${at(90_000)}a-later`]: 25 },
  ring: { 25: 90_000 },
  held: { 'a-runs': 25 },
  attempts: [],
};
const LIMITS = {
  ev: 'limits',
  concurrency: 3,
  rate: { max: 3, perMs: 1_000 },
  groupConcurrency: 2,
  groupRate: { max: 2, perMs: 1_000 },
};

/** A good history under limits, all of which are used to the full. */
function limitedStory(groups: Partial<GroupIndexes> = {}): Story {
  const story = goodStory().tell('director', 0, LIMITS);
  // Two of a group at once, and the third as soon as the first one has ended and the window has room.
  for (const [id, start, end] of [
    ['a1', 25_000, 25_400],
    ['a2', 25_100, 25_300],
    ['a3', 26_000, 26_100],
  ] as const) {
    story
      .asks(
        24_900,
        'enqueue',
        id,
        { version: `${id}/1`, due: 24_900, group: 'acme' },
        { ev: 'answered', outcome: 'created' },
      )
      .starts('w1.1', start, start, id)
      .ends('w1.1', end, start, id, 'ok', ['complete']);
  }
  const indexes = { due: ['a-later'], running: ['a-runs'], jobs: ['a-later', 'a-runs'] };
  return story.tell('director', 25_900, {
    ev: 'store',
    final: false,
    indexes: { ...NOTHING, ...indexes },
    groups: { ...GROUPS, ...groups },
  });
}

/** Another job of the group that runs for a while. */
function runsOf(story: Story, id: string, start: number, group?: string): Story {
  return story
    .asks(
      24_900,
      'enqueue',
      id,
      { version: `${id}/1`, due: 24_900, ...(group && { group }) },
      { ev: 'answered', outcome: 'created' },
    )
    .starts('w2.1', start, start + 1, id)
    .ends('w2.1', start + 50, start + 1, id, 'ok', ['complete']);
}

const FALSIFIED_LIMITS: [title: string, rule: Rule, story: () => Story][] = [
  ['a due job is in no group', 'grouped', () => limitedStory({ grouped: {} })],
  [
    'a job stands in its group at another time',
    'grouped',
    () => limitedStory({ grouped: { [`${at(90_001)}a-later`]: 25 } }),
  ],
  ['a group has a job that is not due', 'grouped', () => limitedStory({ due: {} })],
  ['a group with jobs never has a turn', 'ring', () => limitedStory({ ring: {} })],
  ['a group waits for longer than its first job', 'ring', () => limitedStory({ ring: { 25: 90_001 } })],
  ['a place of a group is held by a job that does not run', 'held', () => limitedStory({ held: { ghost: 25 } })],
  ['a group runs three jobs and may run two', 'limits', () => runsOf(limitedStory(), 'a4', 25_200, 'acme')],
  ['the queue runs more than it may', 'limits', () => runsOf(runsOf(limitedStory(), 'b1', 25_200), 'b2', 25_210)],
  ['a group starts more within a window than it may', 'rates', () => runsOf(limitedStory(), 'a4', 25_500, 'acme')],
  [
    'the queue starts more within a window than it may',
    'rates',
    () => runsOf(runsOf(limitedStory(), 'b1', 25_500), 'b2', 25_600),
  ],
  [
    'a claim has a job twice',
    'twice',
    () =>
      limitedStory().tell('w4.1', 21_600, {
        ev: 'claimed',
        token: 21_600,
        now: 21_600,
        jobs: [
          ['waits', 81_000, 0],
          ['waits', 81_000, 0],
        ],
      }),
  ],
];

const SCHEDULE = { id: 's', everyMs: 1_000, until: 33_000, missed: 'all', overlap: 'queue', ms: 50 };
const COUNTS = { made: 4, missed: 0, overlapped: 1 };
const occurrence = (time: number) => `{s}${time.toString(36)}`;

/** Of four times of a schedule three run; the third one is lost by its process, and the last one waits until it is done. */
function scheduledStory(counts: object | null = COUNTS): Story {
  const story = goodStory()
    .tell('director', 0, { ev: 'schedules', schedules: [SCHEDULE] })
    .tell('w1.1', 29_000, { ev: 'scheduled', id: 's', outcome: 'created', next: 30_000 })
    .tell('w2.1', 29_010, { ev: 'scheduled', id: 's', outcome: 'kept', next: 30_000 });
  runsOccurrence(story, 30_000, 30_010);
  story
    .claims('w1.1', 31_000, 31_000, occurrence(31_000))
    .settles('w1.1', 31_010, [occurrence(31_000), 31_000, 'release', 31_000]);
  story.starts('w3.1', 32_000, 32_000, occurrence(32_000), '{s}');
  story.tell('director', 32_100, { ev: 'fault', kind: 'kill', target: 'w3', begin: 32_100, end: 32_110, effect: true });
  story
    .claims('w1.1', 33_000, 33_000, occurrence(33_000))
    .settles('w1.1', 33_010, [occurrence(33_000), 33_000, 'release', 34_500]);
  runsOccurrence(story, 32_000, 34_100);
  runsOccurrence(story, 33_000, 34_500);
  return counts ? story.tell('p1.1', 35_000, { ev: 'counted', id: 's', ...counts }) : story;
}

function runsOccurrence(story: Story, time: number, at: number, lastsMs = 50): Story {
  return story
    .starts('w1.1', at, at, occurrence(time), '{s}')
    .ends('w1.1', at + lastsMs, at, occurrence(time), 'ok', ['complete']);
}

const without = (story: Story, isOut: (event: HistoryEvent) => boolean) => {
  story.events = story.events.filter((event) => !isOut(event));
  return story;
};

const FALSIFIED_SCHEDULES: [title: string, rule: Rule, story: () => Story][] = [
  ['a time of a schedule is left out in silence', 'accounted', () => scheduledStory({ ...COUNTS, overlapped: 0 })],
  ['a time of a schedule was never made', 'accounted', () => scheduledStory({ made: 3, missed: 0, overlapped: 0 })],
  ['an occurrence that ran is counted as missed', 'accounted', () => scheduledStory({ ...COUNTS, missed: 1 })],
  ['a schedule is gone', 'accounted', () => scheduledStory(null)],
  [
    'nobody made a schedule',
    'accounted',
    () => without(scheduledStory(), (event) => event.ev === 'scheduled' || isAbout(occurrence(30_000))(event)),
  ],
  [
    'an occurrence began while the one before it waited for another run',
    'alongside',
    () => runsOccurrence(scheduledStory({ ...COUNTS, overlapped: 0 }), 31_000, 33_500),
  ],
  [
    'an occurrence began before its time',
    'early',
    () => runsOccurrence(scheduledStory({ ...COUNTS, overlapped: 0 }), 31_000, 30_900),
  ],
  ['an occurrence ran again after it had ended', 'uncaused', () => runsOccurrence(scheduledStory(), 30_000, 30_500)],
  [
    'an occurrence of no time of its schedule ran',
    'unexpected',
    () => runsOccurrence(scheduledStory(), 30_500, 30_500),
  ],
  [
    'an occurrence that had begun is nowhere',
    'lost',
    () => without(scheduledStory(), ({ at, ev }) => at > 32_100 && at < 34_300 && ev !== 'fault' && ev !== 'claimed'),
  ],
];

const rulesBroken = async (story: Story) => [
  ...new Set((await check(story.events, { leaseMs: LEASE })).violations.map(({ rule }) => rule)),
];
const END = 22_000;
const STORED = {
  dead: [
    ['bad', 'exhausted'],
    ['anew', 'exhausted'],
  ] as [string, string][],
};
const isAbout = (id: string) => (event: HistoryEvent) =>
  JSON.stringify(event).includes(`"${id}"`) || JSON.stringify(event).includes(`"${id}/`);

/** What is changed in the good history, and which rule must notice. */
const FALSIFIED: [title: string, rule: Rule, change: (story: Story) => void][] = [
  ['an acknowledged job is nowhere', 'lost', (story) => story.enqueues(5_000, 'lost')],
  [
    'a job was completed without having run to its end',
    'lost',
    (story) => (story.events = story.events.filter((event) => !(event.ev === 'effect' && event.id === 'plain'))),
  ],
  [
    'a replacement was acknowledged, and only the old payload ran',
    'lost',
    (story) =>
      (story.events = story.events.filter((event) => !(event.p === 'w1.1' && event.at >= 13_300 && event.at < 13_400))),
  ],
  [
    'a dead letter is gone',
    'lost',
    (story) => {
      story.events = story.events.filter(({ ev }) => ev !== 'store');
      story.store(END, { due: ['waits'], jobs: ['waits'] }, []);
    },
  ],
  ['an enqueue in doubt is repeated when that makes a new job', 'lost', (story) => repeats(story, 60_001)],
  ['nobody looked at the end', 'lost', (story) => (story.events = story.events.filter(({ ev }) => ev !== 'store'))],
  ['a job ran that nobody asked for', 'unexpected', (story) => story.starts('w1.1', 5_000, 5_500, 'ghost')],
  [
    'a refused job ran',
    'unexpected',
    (story) =>
      story.starts('w1.1', 17_500, 17_500, 'refused').ends('w1.1', 17_510, 17_500, 'refused', 'ok', ['complete']),
  ],
  [
    'a token settles that was never given',
    'unexpected',
    (story) => story.settles('w1.1', 5_000, ['plain', 77, 'complete', 0]),
  ],
  [
    'a job ran before its due time',
    'early',
    (story) =>
      story
        .enqueues(5_000, 'early', 500)
        .starts('w1.1', 5_499, 5_500, 'early')
        .ends('w1.1', 5_510, 5_500, 'early', 'ok', ['complete']),
  ],
  [
    'a retry came before the end of its backoff',
    'early',
    (story) =>
      story
        .enqueues(5_000, 'hasty')
        .starts('w1.1', 5_200, 5_500, 'hasty')
        .ends('w1.1', 5_210, 5_500, 'hasty', 'failed', ['retry', 1_000])
        .starts('w1.1', 6_000, 6_500, 'hasty')
        .ends('w1.1', 6_010, 6_500, 'hasty', 'ok', ['complete']),
  ],
  [
    'a job that was put off ran at its old time',
    'early',
    (story) =>
      story
        .enqueues(5_000, 'old', 500)
        .asks(5_100, 'reschedule', 'old', { due: 9_000 }, { ev: 'answered', outcome: 'rescheduled', state: 'delayed' })
        .starts('w1.1', 5_600, 5_700, 'old')
        .ends('w1.1', 5_610, 5_700, 'old', 'ok', ['complete']),
  ],
  ['a second lease began before the first could end', 'overlap', (story) => story.claims('w4.1', 8_500, 8_200, 'long')],
  ['a lease was taken although it had been renewed', 'overlap', (story) => story.claims('w4.1', 10_200, 8_200, 'long')],
  [
    'a job ran again after its completion was confirmed',
    'uncaused',
    (story) => story.starts('w1.1', 500, 1_500, 'plain').ends('w1.1', 510, 1_500, 'plain', 'ok', ['complete']),
  ],
  [
    'a cancelled job ran',
    'uncaused',
    (story) => story.starts('w1.1', 21_500, 21_500, 'gone').ends('w1.1', 21_510, 21_500, 'gone', 'ok', ['complete']),
  ],
  [
    'a lease was lost although nothing happened to its owner',
    'uncaused',
    (story) => (story.events = story.events.filter((event) => !(event.ev === 'fault' && event.kind === 'freeze'))),
  ],
  [
    'a healthy job is a dead letter',
    'healthyDead',
    (story) => {
      story.events = story.events.filter((event) => event.ev !== 'store');
      const dead: [string, string][] = [...STORED.dead, ['snooze', 'exhausted']];
      story.store(END, { due: ['waits'], dead, jobs: ['waits', 'bad', 'anew', 'snooze'] }, []);
    },
  ],
  [
    'a job died before its attempts were used',
    'healthyDead',
    (story) =>
      (story.events = story.events.filter(
        (event) => !isAbout('bad')(event) || event.at < 11_400 || event.ev === 'store',
      )),
  ],
  [
    'a settle of a frozen worker counted although the job had gone to another one',
    'stale',
    (story) =>
      (story.events = story.events.map((event) =>
        event.ev === 'settleAnswer' && event.lost.includes('frozen') ? { ...event, lost: [] } : event,
      )),
  ],
  [
    'a heartbeat of a frozen worker counted although the job had gone to another one',
    'stale',
    (story) => {
      story.events = story.events.filter((event) => event.p !== 'w3.1' || event.at < 7_300);
      story.tell('w3.1', 7_310, { ev: 'renewed', sent: 7_305, tokens: [6_000], left: [] });
    },
  ],
  [
    'a job that is due is not run although the faults are over',
    'stuck',
    (story) => {
      story.events = story.events.filter((event) => event.ev !== 'store');
      story
        .enqueues(15_000, 'forgotten')
        .store(END, { due: ['waits', 'forgotten'], ...STORED, jobs: ['waits', 'bad', 'anew', 'forgotten'] }, []);
    },
  ],
  [
    'a job is in two indexes',
    'index',
    (story) => story.store(16_060, { due: ['gone'], running: ['gone'], jobs: ['gone'] }),
  ],
  ['a record is in no index', 'index', (story) => story.store(16_060, { jobs: ['gone'] })],
  ['an index names a job without a record', 'index', (story) => story.store(16_060, { due: ['gone'] })],
  ['a followup waits for a job that does not run', 'index', (story) => story.store(16_060, { followups: ['gone'] })],
  ['a key of a foreign name is left', 'keys', (story) => rekey(story, ['{work}:lock:plain', -1])],
  [
    'a session of a process that ended well is left',
    'keys',
    (story) => {
      story.tell('w1.1', 900, { ev: 'session', key: 'prefix:{work}:session:well.1' });
      rekey(story, ['{work}:session:well.1', 1_000]);
    },
  ],
  ['a session is left for ever', 'keys', (story) => rekey(story, ['{work}:session:dead.1', -1])],
  ['a key with jobs has a TTL', 'keys', (story) => rekey(story, ['{work}:due', 1_000])],
  [
    'a process ended by itself',
    'crash',
    (story) => story.tell('director', 5_000, { ev: 'exit', of: 'w1.1', how: '1', asked: false }),
  ],
  [
    'too few faults took effect',
    'faults',
    (story) =>
      (story.events = story.events.map((event) =>
        event.ev === 'planned' ? { ...event, faults: { kill: 1, freeze: 2 } } : event,
      )),
  ],
  [
    'a kind of fault never took effect',
    'faults',
    (story) =>
      (story.events = story.events.map((event) =>
        event.ev === 'planned' ? { ...event, faults: { kill: 1, freeze: 1, pause: 0, full: 1 } } : event,
      )),
  ],
];

/** An enqueue in doubt whose job ran, and which its process repeats `later`: that is answered as the first call was. */
function repeats(story: Story, later: number): Story {
  const asks = (op: number, at: number) =>
    story.tell('p1.1', at, { ev: 'asked', op, what: 'enqueue', id: 'again', version: 'again/1', due: at });
  asks(9_001, 1_000).tell('p1.1', 1_500, { ev: 'failed', op: 9_001, code: 'ERR_DQ_UNAVAILABLE', maybe: true });
  story.starts('w1.1', 1_100, 1_100, 'again').ends('w1.1', 1_120, 1_100, 'again', 'ok', ['complete']);
  const at = 1_500 + later;
  return asks(9_002, at).tell('p1.1', at + 1, { ev: 'answered', op: 9_002, outcome: 'created', state: 'due' });
}

function rekey(story: Story, key: [string, number]): void {
  story.events = story.events.map((event) =>
    event.ev === 'store' && event.final ? { ...event, keys: [...event.keys!, key] } : event,
  );
}

describe('The checker of fault runs', () => {
  it('takes the answer to a repeat of an enqueue in doubt for that of the first call, which may have run by then', async () => {
    const { violations } = await check(repeats(goodStory(), 100).events, { leaseMs: LEASE });
    expect(violations).toEqual([]);
  });

  it('permits a session that says it is over, for as long as sessions may stay', async () => {
    const story = goodStory();
    story.tell('w1.1', 900, { ev: 'session', key: 'prefix:{work}:session:well.1' });
    rekey(story, [`{work}:session:well.1${OVER}`, 1_000]);
    expect((await check(story.events, { leaseMs: LEASE })).violations).toEqual([]);
  });

  it('finds nothing wrong with a good history, and counts what happened', async () => {
    const { violations, figures } = await check(goodStory().events, { leaseMs: LEASE });
    expect(violations).toEqual([]);
    expect(figures).toMatchObject({
      jobs: { asked: 14, acknowledged: 12, refused: 1, doubtful: 1 },
      deadLetters: 2,
      secondRuns: { kill: 1, freeze: 1, failure: 1, snooze: 1, 'asked for again': 2 },
      faults: { kill: { planned: 1, tookEffect: 1 }, freeze: { planned: 1, tookEffect: 1 } },
    });
  });

  it.each(FALSIFIED)('reports when %s (%s)', async (_, rule, change) => {
    const story = goodStory();
    change(story);
    expect(await rulesBroken(story)).toContain(rule);
  });

  it('finds nothing wrong with a good history under limits that are used to the full', async () => {
    expect((await check(limitedStory().events, { leaseMs: LEASE })).violations).toEqual([]);
  });

  it.each(FALSIFIED_LIMITS)('reports under limits when %s (%s)', async (_, rule, story) => {
    expect(await rulesBroken(story())).toContain(rule);
  });

  it('finds nothing wrong with a good history of a schedule, and counts its occurrences', async () => {
    const { violations, figures } = await check(scheduledStory().events, { leaseMs: LEASE });
    expect(violations).toEqual([]);
    expect(figures.occurrences).toEqual({ times: 4, ran: 3, missed: 0, overlapped: 1 });
    expect(figures.jobs.asked).toBe(14);
  });

  it.each(FALSIFIED_SCHEDULES)('reports of schedules when %s (%s)', async (_, rule, story) => {
    expect(await rulesBroken(story())).toContain(rule);
  });

  it('has a falsified history for each of its rules', () => {
    const all = [...FALSIFIED, ...FALSIFIED_LIMITS, ...FALSIFIED_SCHEDULES];
    expect(new Set(all.map(([, rule]) => rule))).toEqual(new Set(Object.keys(RULES)));
  });

  it('reads the processes in any order', async () => {
    const { events } = goodStory();
    const names = [...new Set(events.map(({ p }) => p))].reverse();
    const mixed = names.flatMap((name) => events.filter(({ p }) => p === name));
    expect((await check(mixed, { leaseMs: LEASE })).violations).toEqual([]);
  });
});
