import { useMemo, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { zone } from '../settings.js';
import { labelsOf, marksOf } from './axis.js';
import { coloursOf, fontOf } from './chart-colours.js';
import type { Colour } from './chart-colours.js';
import { alone } from './lone-points.js';
import { Plot } from './plot.js';

export interface Line {
  readonly label: string;
  readonly colour: Colour;
  readonly values: readonly (number | null)[];
}

export interface LinesProps {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** A dashed line at a value: a limit. */
  readonly limit?: number;
  /** For values that differ by orders of magnitude. */
  readonly isLog?: boolean;
  readonly text: (value: number) => string;
  /** What the times are called when one is pointed at. */
  readonly timeText: (at: number) => string;
}

export function Lines(props: LinesProps) {
  const { name, from, to, times, lines, text, timeText } = props;
  const [pointed, point] = useState<number | undefined>(undefined);
  const key = `${times.join()} ${lines.map(({ values }) => values.join()).join(';')}`;
  const data = useMemo(() => [[...times], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData, [key]);
  return (
    <>
      <div class="key chart-hint">
        {lines.map(({ label, colour, values }) => (
          <span key={label}>
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <circle cx="5" cy="5" r="4" class={`dot-${colour.split('-')[0]}`} />
            </svg>
            {label}
            {pointed !== undefined &&
              `: ${values[pointed] === null || values[pointed] === undefined ? 'none' : text(values[pointed])}`}
          </span>
        ))}
        {pointed !== undefined && times[pointed] !== undefined && <span>{timeText(times[pointed])}</span>}
      </div>
      <div class="chart" role="img" aria-label={`Chart: ${name}. The same numbers are in the table.`}>
        <Plot
          key1={`${from} ${to} ${zone.value} ${lines.length}`}
          data={data}
          options={(width, inside) => linesOptions(props, width, inside, point)}
        />
      </div>
    </>
  );
}

function linesOptions(
  { from, to, lines, limit, isLog = false, text }: LinesProps,
  width: number,
  inside: HTMLElement,
  onPoint: (index: number | undefined) => void,
): uPlot.Options {
  const colour = coloursOf(inside);
  const font = `12px ${fontOf(inside)}`;
  const axis = { stroke: colour('muted'), font, ticks: { show: false } };
  const marks = marksOf(from, to, width < 600 ? 4 : 9, zone.peek());
  const range = (_: uPlot, least: number | null, most: number | null): [number, number] => {
    const top = Math.max(most ?? 0, isLog ? (limit ?? 10) * 1.5 : 1);
    return isLog ? [Math.max(0.5, Math.min(least ?? 1, 1)), top * 1.3] : [0, Math.max(4, top * 1.1)];
  };
  return {
    width,
    height: width < 600 ? 180 : 220,
    padding: [10, 12, 0, 4],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: false, range: [from, to] }, y: { distr: isLog ? 3 : 1, range } },
    axes: [
      { ...axis, size: 28, grid: { show: false }, splits: () => marks.at, values: () => labelsOf(marks, zone.peek()) },
      {
        ...axis,
        size: 58,
        grid: { stroke: colour('line'), width: 1 },
        ...(isLog && { splits: (_: uPlot, __: number, least: number, most: number) => decades(least, most) }),
        values: (_, values) => values.map((value) => (value === null ? '' : text(value))),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour: name }) => ({
        label,
        stroke: colour(name),
        width: 1.8,
        points: {
          show: (plot: uPlot) => plot.data[0].length < 40,
          size: 4,
          filter: (plot: uPlot, n: number, isShown: boolean) => (isShown ? null : alone(plot.data[n]!)),
        },
        spanGaps: false,
      })),
    ],
    hooks: {
      setCursor: [({ cursor: { idx } }) => onPoint(idx ?? undefined)],
      draw: limit === undefined ? [] : [(plot) => drawLimit(plot, limit, colour('bad-fill'))],
    },
  };
}

function decades(least: number, most: number): number[] {
  const first = Math.ceil(Math.log10(least));
  return Array.from({ length: Math.floor(Math.log10(most)) - first + 1 }, (_, n) => 10 ** (first + n));
}

function drawLimit(plot: uPlot, limit: number, colour: string): void {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(limit, 'y', true);
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
