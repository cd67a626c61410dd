import { useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { count, jobs, near } from '../format.js';
import { asTable, zone } from '../settings.js';
import { sum } from '../sums.js';
import { brushable, bucketsBetween, showBrush } from './brush.js';
import type { Brushed } from './brush.js';
import { dataOf, histogramOptions } from './histogram-plot.js';
import type { Bars, Span } from './histogram-plot.js';
import { Plot } from './plot.js';

export interface HistogramProps {
  readonly bars: Bars;
  readonly late: readonly Span[];
  readonly brushed: Brushed | undefined;
  readonly onBrush: (brushed: Brushed) => void;
  readonly height?: number;
}

/** How many jobs fall due when; a part of it is chosen by pointer, by touch, by the arrow keys, or in the table. */
export function Histogram({ bars, late, brushed, onBrush, height }: HistogramProps) {
  const [hovered, hover] = useState<number | undefined>(undefined);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef({ bars, late, onBrush });
  latest.current = { bars, late, onBrush };
  const data = useStable(bars);

  if (asTable.value === 'yes') return <Numbers bars={bars} onBrush={onBrush} />;
  if (plot.current?.root.isConnected) showBrush(plot.current, brushed, bars);
  const pointed = hovered === undefined ? undefined : Math.floor((hovered - bars.from) / bars.widthMs);
  return (
    <>
      <div
        class="chart"
        role="group"
        tabIndex={0}
        aria-label={`Chart: ${jobs(sum(bars.counts))} in ${bars.counts.length} columns. Left and right choose a column, with Shift several. The same numbers are in the table.`}
        onKeyDown={(event) => pressArrow(event, bars, brushed, onBrush)}
      >
        <Plot
          key1={`${bars.from} ${bars.to} ${zone.value} ${bars.overdue > 0} ${late.map(({ from, to }) => from + to).join()}`}
          data={data}
          options={(width, inside) =>
            histogramOptions(
              { bars: () => latest.current.bars, late: () => latest.current.late, zone: () => zone.value, height },
              width,
              inside,
            )
          }
          onPlot={(made) => {
            plot.current = made;
            const onBrush = (chosen: Brushed) => latest.current.onBrush(chosen);
            brushable(made, { bars: () => latest.current.bars, onHover: hover, onBrush });
            showBrush(made, brushed, bars);
          }}
        />
      </div>
      <p class="chart-hint">
        {pointed === undefined ? 'Drag over the chart to choose a range.' : pointedText(bars, pointed)}
      </p>
    </>
  );
}

/** uPlot draws anew when it is given other data: not at each tick of the clock. */
function useStable(bars: Bars): uPlot.AlignedData {
  const kept = useRef<{ text: string; data: uPlot.AlignedData } | undefined>(undefined);
  const text = `${bars.from} ${bars.widthMs} ${bars.overdue} ${bars.now} ${bars.counts.join()}`;
  if (kept.current?.text !== text) kept.current = { text, data: dataOf(bars) };
  return kept.current.data;
}

function pointedText({ from, to, widthMs, counts, overdue, now }: Bars, n: number): string {
  if (n < 0) return `${jobs(overdue)} overdue`;
  const start = from + n * widthMs;
  const end = Math.min(to, start + widthMs);
  return `${near(start, now, zone.value)} to ${near(end, now, zone.value)}: ${jobs(counts[n] ?? 0)}`;
}

function pressArrow(
  event: KeyboardEvent,
  bars: Bars,
  brushed: Brushed | undefined,
  onBrush: (brushed: Brushed) => void,
): void {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const { from, widthMs, counts } = bars;
  const last = brushed ? Math.round((brushed.to - from) / widthMs) - 1 : by > 0 ? -1 : counts.length;
  const next = Math.max(0, Math.min(counts.length - 1, last + by));
  const first = event.shiftKey && brushed?.from !== undefined ? Math.round((brushed.from - from) / widthMs) : next;
  const middle = (n: number) => from + (n + 0.5) * widthMs;
  onBrush(bucketsBetween(middle(Math.min(first, next)), middle(next), bars));
}

function Numbers({ bars, onBrush }: { bars: Bars; onBrush: (brushed: Brushed) => void }) {
  const { from, widthMs, counts, overdue, now, to } = bars;
  const filled = counts.map((many, n) => [n, many] as const).filter(([, many]) => many > 0);
  return (
    <div class="numbers" tabIndex={0} role="group" aria-label="The numbers of the chart">
      <table>
        <thead>
          <tr>
            <th>Due from</th>
            <th>before</th>
            <th class="number">Jobs</th>
            <th>
              <span class="unseen">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {overdue > 0 && (
            <NumberRow
              start="overdue"
              end={near(now, now, zone.value)}
              many={overdue}
              onChoose={() => onBrush({ from: undefined, to: now })}
            />
          )}
          {filled.map(([n, many]) => {
            const start = from + n * widthMs;
            const end = Math.min(to, start + widthMs);
            return (
              <NumberRow
                key={n}
                start={near(start, now, zone.value)}
                end={near(end, now, zone.value)}
                many={many}
                onChoose={() => onBrush({ from: start, to: end })}
              />
            );
          })}
          {filled.length === 0 && (
            <tr>
              <td colSpan={4} class="muted">
                No job is due in this time.
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function NumberRow({ start, end, many, onChoose }: { start: string; end: string; many: number; onChoose: () => void }) {
  return (
    <tr>
      <td>{start}</td>
      <td>{end}</td>
      <td class="number">{count(many)}</td>
      <td class="number">
        <button type="button" class="button slim" onClick={onChoose}>
          Choose
        </button>
      </td>
    </tr>
  );
}
