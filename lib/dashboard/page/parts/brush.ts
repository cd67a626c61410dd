import type uPlot from 'uplot';
import type { Bars } from './histogram-plot.js';

/** What was brushed: whole buckets. Without `from` it begins with the overdue. */
export interface Brushed {
  readonly from: number | undefined;
  readonly to: number;
}

export interface BrushLook {
  readonly bars: () => Bars;
  readonly onHover: (at: number | undefined) => void;
  readonly onBrush: (brushed: Brushed) => void;
}

/** Buckets from the first to the last of two moments, in any order. */
export function bucketsBetween(one: number, other: number, bars: Bars): Brushed {
  const { from, to, widthMs, now } = bars;
  const [first, last] = one < other ? [one, other] : [other, one];
  const edge = (at: number, round: (value: number) => number) => from + round((at - from) / widthMs) * widthMs;
  if (last < from) return { from: undefined, to: now };
  const end = Math.min(to, Math.max(edge(last, Math.ceil), edge(first, Math.floor) + widthMs));
  return { from: first < from ? undefined : edge(Math.min(first, to - 1), Math.floor), to: end };
}

/** Pointer, touch and pen alike, which the drag of uPlot is not. */
export function brushable(plot: uPlot, { bars, onHover, onBrush }: BrushLook): void {
  const { over } = plot;
  let start: number | undefined;
  const at = (event: PointerEvent) => {
    const left = Math.max(0, Math.min(over.clientWidth, event.clientX - over.getBoundingClientRect().left));
    return plot.posToVal(left, 'x');
  };
  over.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    start = at(event);
    over.setPointerCapture(event.pointerId);
    showBrush(plot, bucketsBetween(start, start, bars()), bars());
  });
  over.addEventListener('pointermove', (event) => {
    onHover(at(event));
    if (start !== undefined) showBrush(plot, bucketsBetween(start, at(event), bars()), bars());
  });
  over.addEventListener('pointerup', (event) => {
    if (start === undefined) return;
    const brushed = bucketsBetween(start, at(event), bars());
    start = undefined;
    onBrush(brushed);
  });
  over.addEventListener('pointercancel', () => {
    start = undefined;
    showBrush(plot, undefined, bars());
  });
  over.addEventListener('pointerleave', () => onHover(undefined));
}

export function showBrush(plot: uPlot, brushed: Brushed | undefined, bars: Bars): void {
  if (!brushed || brushed.to <= (plot.scales['x']!.min ?? 0)) {
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    return;
  }
  const { from, to } = brushed;
  const left = from === undefined ? 0 : Math.max(0, plot.valToPos(from, 'x'));
  const right = Math.min(plot.over.clientWidth, plot.valToPos(Math.min(to, bars.to), 'x'));
  plot.setSelect({ left, width: Math.max(0, right - left), top: 0, height: plot.over.clientHeight }, false);
}
