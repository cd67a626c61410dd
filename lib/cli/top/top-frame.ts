import type { LiveProcess } from '../../history/process-record.js';
import type { QueueTotals } from '../../inspection/queue-counts.js';
import type { QueueRow } from '../look/queues.js';
import { cut, escaped, widthOf } from '../terminal/escape.js';
import { fitted } from '../terminal/fit.js';
import { counted } from '../terminal/numbers.js';
import { span } from '../terminal/times.js';

/** What was read at one look. */
export interface TopLook {
  /** ms, by the clock of Redis. */
  readonly now: number;
  readonly queues: readonly (QueueRow & { totals: QueueTotals | undefined })[];
  readonly processes: readonly LiveProcess[];
}

export const SORTS = ['due', 'lag', 'dead', 'name'] as const;
export type Sort = (typeof SORTS)[number];

export interface TopView {
  readonly sort: Sort;
  readonly filter: string;
  /** The filter is being typed. */
  readonly typing: boolean;
  readonly paused: boolean;
  readonly trouble: string | undefined;
  readonly columns: number;
  readonly rows: number;
}

interface Line {
  readonly queue: string;
  readonly cells: readonly string[];
}

const TITLES = ['QUEUE', 'STATE', 'DUE', 'RUNNING', 'DELAYED', 'DEAD', 'LAG', 'DONE/S', 'FAILED/S'];
/** Queues and states stand at the left, numbers at the right. */
const TEXTS = 2;
const GAP = '  ';
/** Lines that are no queue: what holds of all, an empty one, titles, keys. */
const OTHERS = 4;

/** The lines of the screen: a pure function of two looks. */
export function frameOf(look: TopLook, before: TopLook | undefined, view: TopView): string[] {
  const wanted = look.queues.filter(({ queue }) => queue.toLowerCase().includes(view.filter.toLowerCase()));
  const lines = wanted.toSorted(ORDERS[view.sort]).map((queue) => lineOf(queue, look, before));
  const room = Math.max(1, view.rows - OTHERS);
  const shown = lines.slice(0, room);
  const whole = TITLES.map((title, n) => Math.max(...[title, ...shown.map(({ cells }) => cells[n]!)].map(widthOf)));
  const widths = fitted(whole, view.columns - GAP.length * (TITLES.length - 1), (n) => n < TEXTS);
  const more = lines.length > room ? `  (${lines.length - room} more)` : '';
  const table = [TITLES, ...shown.map(({ cells }) => cells)].map((cells) => aligned(cells, widths));
  return [summary(look, view) + more, '', ...table, keys(view)].map((line) => cut(line, view.columns));
}

const ORDERS: Record<Sort, (a: QueueRow, b: QueueRow) => number> = {
  name: byName,
  due: (a, b) => (b.due ?? 0) - (a.due ?? 0) || byName(a, b),
  lag: (a, b) => (b.lagMs ?? 0) - (a.lagMs ?? 0) || byName(a, b),
  dead: (a, b) => (b.dead ?? 0) - (a.dead ?? 0) || byName(a, b),
};

function byName(a: QueueRow, b: QueueRow): number {
  return a.queue < b.queue ? -1 : a.queue > b.queue ? 1 : 0;
}

function lineOf(row: TopLook['queues'][number], look: TopLook, before: TopLook | undefined): Line {
  const { queue, state, due, running, delayed, dead, lagMs, totals, error } = row;
  const then = before?.queues.find((other) => other.queue === queue)?.totals;
  const seconds = before ? (look.now - before.now) / 1_000 : 0;
  const rate = (kind: 'completed' | 'failed') =>
    totals && then && seconds > 0 ? String(Math.round(Math.max(0, totals[kind] - then[kind]) / seconds)) : '-';
  const counts = [due, running, delayed, dead].map((count) => String(count ?? '-'));
  const lag = lagMs === undefined ? '-' : lagMs === 0 ? '0' : span(lagMs);
  return {
    queue,
    cells: [
      escaped(queue),
      error === undefined ? state : 'unreadable',
      ...counts,
      lag,
      rate('completed'),
      rate('failed'),
    ],
  };
}

function aligned(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((whole, n) => {
      const cell = n < TEXTS ? cut(whole, widths[n]!) : whole;
      const space = ' '.repeat(Math.max(0, widths[n]! - widthOf(cell)));
      return n < TEXTS ? cell + space : space + cell;
    })
    .join(GAP)
    .trimEnd();
}

function summary({ queues, processes, now }: TopLook, { paused, trouble }: TopView): string {
  const slots = processes.flatMap((process) => process.queues);
  const busy = slots.reduce((sum, queue) => sum + queue.busy, 0);
  const all = slots.reduce((sum, queue) => sum + queue.slots, 0);
  // Only applications with nestjs-delay-queue/history show themselves.
  const live =
    processes.length === 0
      ? ''
      : `   ${processes.length} ${processes.length === 1 ? 'process' : 'processes'}, ${busy} of ${counted(all, 'slot')} busy`;
  const time = new Date(now).toISOString().slice(11, 19);
  const state = trouble === undefined ? (paused ? '   paused' : '') : `   ${escaped(trouble)}`;
  return `${time}Z   ${counted(queues.length, 'queue')}${live}${state}`;
}

function keys({ sort, filter, typing }: TopView): string {
  if (typing) return `/${escaped(filter)}_`;
  return `q quit   p pause   s sort (${sort})   / filter${filter === '' ? '' : ` (${escaped(filter)})`}`;
}
