/**
 * What a part that lacks it has not tested: each occurs some ten times and more in 500 sequences. Whoever adds a command adds its
 * answers here.
 */
export const WANTED_OF_GROUPS: readonly string[] = [
  'setLimits → some',
  'setLimits → none',
  ...['1 jobs', '2 jobs', '3 jobs', 'none (at a limit)', 'none (nothing is due)', 'none (paused)'].map(
    (answer) => `pull → ${answer}`,
  ),
  'pullQuarantined → one of them',
  'retry → done',
  'complete → done, replaced',
  'complete → done, cancelled',
  'complete → done, late',
  'crash → of several jobs',
  ...['retry', 'snooze', 'release'].map((how) => `job keeps the place of its group through a ${how}`),
  'job taken back, charged',
  'job taken back, uncharged',
  'job moved by hand, still in quarantine',
  'purge waiting → some',
];

export const WANTED: readonly string[] = [
  'enqueue without id → created',
  ...['keep', 'replace', 'reschedule', 'reject'].map((mode) => `enqueue ${mode} → created`),
  ...['delayed', 'due', 'running', 'dead'].flatMap((state) => [
    `enqueue keep → kept (${state})`,
    `enqueue replace → replaced (${state})`,
    `enqueue reschedule → rescheduled (${state})`,
    `enqueue reject → rejected (${state})`,
  ]),
  'enqueue keep → replaced (dead)',
  'job not made: still in its window',
  'enqueueMany → 3 results',
  ...['', ' { running }'].flatMap((asked) =>
    ['cancelled (delayed)', 'cancelled (due)', 'running', 'dead', 'notFound'].map(
      (answer) => `cancel${asked} → ${answer}`,
    ),
  ),
  ...['updated (delayed)', 'updated (due)', 'running', 'dead', 'notFound'].map((answer) => `update → ${answer}`),
  ...['reschedule', 'runNow'].flatMap((move) =>
    ['rescheduled (delayed)', 'rescheduled (due)', 'running', 'dead', 'notFound'].map(
      (answer) => `${move} → ${answer}`,
    ),
  ),
  ...['delayed', 'due', 'running', 'nothing'].map((state) => `get → ${state}`),

  ...[
    '1 jobs',
    '2 jobs',
    '3 jobs',
    'none (nothing is due)',
    'none (paused)',
    'none (while one from the quarantine runs)',
  ].map((answer) => `pull → ${answer}`),
  'pullQuarantined → one of them',
  ...['complete', 'fail', 'retry', 'snooze', 'release'].map((how) => `${how} → done`),
  'discard → done (dead)',
  'complete → done, late',
  'discard → done, late',
  'complete → leaseLost',
  'discard → leaseLost',
  'complete → done, replaced',
  'complete → done, cancelled',
  'extend → done',
  'extend → leaseLost',
  'expireLease',
  'crash → of one job',
  'crash → of several jobs',
  'advance',
  'pause',
  'resume',

  'job taken back, charged',
  'job taken back, uncharged',
  'job taken back with a replacement',
  'job taken back with a tombstone',
  'job moved by hand, still in quarantine',
  'job claimed, expired',
  'job claimed, dead (expired)',
  'lost: answer of the producer',
  'lost: answer of a worker',
  'lost: request of the producer',
  'lost: request of a worker',

  'inspect',
  'requeueDead all → some',
  'requeueDead ids → some',
  'removeDead all → some',
  'purge waiting → some',
  'purge waiting and dead → some',
];
