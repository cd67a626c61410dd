import { expect, it } from '@jest/globals';
import { frameOf } from '../../../lib/cli/top/top-frame.js';
import type { TopLook, TopView } from '../../../lib/cli/top/top-frame.js';

const VIEW: TopView = {
  sort: 'due',
  filter: '',
  typing: false,
  paused: false,
  trouble: undefined,
  columns: 100,
  rows: 24,
};
const totals = (completed: number) => ({
  enqueued: 0,
  completed,
  failed: 0,
  retried: 0,
  dead: 0,
  expired: 0,
  skipped: 0,
  since: undefined,
});
const queue = (name: string, due: number, completed = 0) => ({
  queue: name,
  state: 'ok' as const,
  due,
  running: 1,
  delayed: 2,
  dead: 0,
  lagMs: due * 1_000,
  totals: totals(completed),
});
const look = (now: number, ...queues: TopLook['queues'][number][]): TopLook => ({ now, queues, processes: [] });

it('shows rates from two looks, and the queue with most due jobs first', () => {
  const before = look(0, queue('a', 1, 100), queue('b', 5));
  const lines = frameOf(look(2_000, queue('a', 1, 300), queue('b', 5)), before, VIEW);
  expect(lines).toEqual([
    '00:00:02Z   2 queues',
    '',
    'QUEUE  STATE  DUE  RUNNING  DELAYED  DEAD  LAG  DONE/S  FAILED/S',
    'b      ok       5        1        2     0  5 s       0         0',
    'a      ok       1        1        2     0  1 s     100         0',
    'q quit   p pause   s sort (due)   / filter',
  ]);
});

it('fits the screen, shows what matches the filter, and sends nothing to the terminal that it would obey', () => {
  const many = Array.from({ length: 50 }, (_, n) => queue(`q${n}\u001b[2J`, n));
  const small = frameOf(look(0, ...many), undefined, { ...VIEW, rows: 10, columns: 30 });
  expect(small).toHaveLength(10);
  expect(Math.max(...small.map((line) => line.length))).toBeLessThanOrEqual(30);
  expect(small.join('')).not.toContain('\u001b');
  const found = frameOf(look(0, ...many), undefined, { ...VIEW, filter: 'Q7' });
  expect(found.filter((line) => line.startsWith('q7'))).toHaveLength(1);
});
