import uPlot from 'uplot';
import { count } from '../format.js';
import type { Zone } from '../format.js';
import { labelsOf, marksOf } from './axis.js';
import { coloursOf, fontOf } from './chart-colours.js';

// How many jobs fall due when, drawn: bars, the overdue at the left, the present moment, peaks with their number, and the
// times in which jobs will start late.

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Bars {
  readonly from: number;
  readonly to: number;
  readonly widthMs: number;
  readonly counts: readonly number[];
  readonly now: number;
  /** Drawn in a strip at the left, if there are any. */
  readonly overdue: number;
}

/** The part of the width that the strip of the overdue takes. */
const STRIP = 0.055;
const MOST_PEAKS = 3;
/** So many times the mean, at least, a bar is a peak. */
const PEAK = 1.6;

export function stripMs({ from, to, overdue }: Bars): number {
  return overdue > 0 ? (to - from) * STRIP : 0;
}

/** A bar for each bucket; the strip has none. */
export function dataOf({ from, widthMs, counts }: Bars): uPlot.AlignedData {
  return [counts.map((_, n) => from + n * widthMs), [...counts]];
}

/** Indexes of the highest bars that stand out from those around them. */
export function peaksOf(counts: readonly number[]): number[] {
  const filled = counts.filter((many) => many > 0);
  if (filled.length === 0) return [];
  const mean = filled.reduce((sum, many) => sum + many) / counts.length;
  const byHeight = counts.map((_, n) => n).sort((a, b) => counts[b]! - counts[a]!);
  const found: number[] = [];
  for (const n of byHeight) {
    if (found.length === MOST_PEAKS || counts[n]! < mean * PEAK || counts[n] === 0) break;
    const isTop = counts[n]! >= (counts[n - 1] ?? 0) && counts[n]! >= (counts[n + 1] ?? 0);
    if (isTop && found.every((peak) => Math.abs(peak - n) > counts.length / 14)) found.push(n);
  }
  return found;
}

export interface HistogramLook {
  /** Read at each drawing. */
  readonly bars: () => Bars;
  readonly late: () => readonly Span[];
  readonly zone: () => Zone;
  readonly height?: number | undefined;
}

export function histogramOptions(look: HistogramLook, width: number, inside: HTMLElement): uPlot.Options {
  const colour = coloursOf(inside);
  const font = `12px ${fontOf(inside)}`;
  const isSmall = width < 600;
  const marks = () => {
    const { from, to } = look.bars();
    return marksOf(from, to, isSmall ? 4 : 9, look.zone());
  };
  const axis = { stroke: colour('muted'), font, ticks: { show: false } };
  return {
    width,
    height: look.height ?? (isSmall ? 210 : 270),
    padding: [22, 12, 0, isSmall ? 0 : 4],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => [look.bars().from - stripMs(look.bars()), look.bars().to] },
      y: { range: (_, __, most) => [0, Math.max(4, (most ?? 0) * 1.08)] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        grid: { show: false },
        splits: () => marks().at,
        values: () => labelsOf(marks(), look.zone()),
      },
      {
        ...axis,
        size: isSmall ? 44 : 56,
        grid: { stroke: colour('line'), width: 1 },
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7],
        values: (_, values) => values.map((value) => count(value)),
      },
    ],
    series: [
      {},
      {
        fill: colour('accent-fill'),
        stroke: colour('accent-fill'),
        width: 0,
        points: { show: false },
        paths: uPlot.paths.bars!({ size: [0.86, 60], align: 1, radius: 0.12 }),
      },
    ],
    hooks: {
      drawClear: [(plot) => drawLate(plot, look.late(), colour('warn-soft'))],
      draw: [(plot) => drawMarks(plot, look.bars(), colour, fontOf(inside))],
    },
  };
}

function drawLate(plot: uPlot, late: readonly Span[], fill: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = fill;
  for (const { from, to } of late) {
    const left = Math.max(bbox.left, plot.valToPos(from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true));
    if (right > bbox.left && right > left) ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
  }
  ctx.restore();
}

function drawMarks(plot: uPlot, bars: Bars, colour: ReturnType<typeof coloursOf>, family: string): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  const x = (at: number) => plot.valToPos(at, 'x', true);
  const y = (many: number) => plot.valToPos(Math.min(many, plot.scales['y']!.max!), 'y', true);
  ctx.save();
  ctx.font = `600 ${12 * ratio}px ${family}`;
  let strip = Infinity;
  if (bars.overdue > 0) {
    strip = x(bars.from) - x(bars.from - stripMs(bars));
    const top = y(bars.overdue);
    ctx.fillStyle = colour('warn-fill');
    ctx.fillRect(bbox.left, top, strip * 0.8, bbox.top + bbox.height - top);
    ctx.textAlign = 'left';
    ctx.fillText(count(bars.overdue), bbox.left, top - 5 * ratio);
  }
  ctx.textAlign = 'center';
  ctx.fillStyle = colour('text');
  for (const n of peaksOf(bars.counts)) {
    const middle = x(bars.from + (n + 0.5) * bars.widthMs);
    const text = count(bars.counts[n]!);
    const half = ctx.measureText(text).width / 2;
    const inside = Math.min(Math.max(middle, bbox.left + half), bbox.left + bbox.width - half);
    ctx.fillText(text, inside, y(bars.counts[n]!) - 5 * ratio);
  }
  if (bars.now >= bars.from - stripMs(bars) && bars.now <= bars.to) {
    const at = Math.max(bbox.left, x(bars.now));
    ctx.fillStyle = colour('text');
    ctx.fillRect(at - ratio / 2, bbox.top - 12 * ratio, ratio, bbox.height + 12 * ratio);
    ctx.textAlign = 'left';
    ctx.font = `500 ${11 * ratio}px ${family}`;
    // Where there is no room, the number of the overdue stands there.
    if (strip > 40 * ratio) ctx.fillText('now', at + 4 * ratio, bbox.top - 5 * ratio);
  }
  ctx.restore();
}
