import { useMemo } from 'preact/hooks';
import type { ForecastResponse, TimelineResponse } from '../../api.js';
import { absolute, count, duration, jobs, near } from '../format.js';
import { canWrite, me, now, queues } from '../live.js';
import { Choices, Empty, Figure, Loading, Relative, StatusBadge, Trouble } from '../parts/basic.js';
import type { Brushed } from '../parts/brush.js';
import { Histogram } from '../parts/histogram.js';
import type { Bars } from '../parts/histogram-plot.js';
import { change, linkTo, route, timeOf } from '../route.js';
import { asTable, zone } from '../settings.js';
import { QueuePicker } from '../shell.js';
import { useData } from '../use-data.js';
import { BrushedRange } from './brushed-range.js';
import { Limits } from './limits.js';
import { QueueActs } from './queue-acts.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How far to look, and how wide the bars are: full units, so that they stand still while time goes on. */
const SPANS: Readonly<Record<string, readonly [label: string, ms: number, width: number]>> = {
  '15m': ['15 min', 15 * MINUTE, 10_000],
  '1h': ['1 h', HOUR, MINUTE],
  '24h': ['24 h', DAY, 15 * MINUTE],
  '7d': ['7 d', 7 * DAY, 2 * HOUR],
  '30d': ['30 d', 30 * DAY, 6 * HOUR],
};
const ALL = 'all';
const BARS_OF_ALL = 100;
const REFRESH_MS = 5_000;

interface Wanted {
  readonly from?: number;
  readonly to?: number;
  readonly buckets: number;
}

export function TimelineScreen() {
  const { queue, span = '24h', ...edges } = route.value.params;
  const [from, to] = [timeOf(edges['from']), timeOf(edges['to'])];
  const isZoomed = from !== undefined && to !== undefined && from < to;
  const extent = useData('timeline', span === ALL && !isZoomed ? { queue, buckets: 1 } : undefined, {
    everyMs: 60_000,
  });
  const wanted = isZoomed ? zoomed(from, to) : wantedOf(span, extent.value);
  const timeline = useData('timeline', wanted && { queue, ...wanted }, {
    everyMs: REFRESH_MS,
    subject: [queue, span, from, to].join(' '),
  });
  const isForecast = queue !== undefined && me.value?.features.history === true;
  const forecast = useData('forecast', isForecast ? { queue } : undefined, { everyMs: 15_000 });
  const known = timeline.value;
  const limited = queues.value.find((one) => one.queue === queue)?.limited;
  return (
    <>
      <div class="row">
        <QueuePicker all="All queues" />
        <Spans span={isZoomed ? '' : span} queue={queue} />
        {isZoomed && (
          <a class="button slim" href={linkTo('timeline', { queue, span })}>
            Zoom out
          </a>
        )}
        <QueueHead queue={queue} />
      </div>
      {(timeline.problem ?? extent.problem) && <Trouble problem={(timeline.problem ?? extent.problem)!} />}
      {known ? <Shown timeline={known} queue={queue} forecast={forecast.value} isZoomed={isZoomed} /> : <Loading />}
      {limited !== undefined && <Limits queue={queue!} />}
    </>
  );
}

function QueueHead({ queue }: { queue: string | undefined }) {
  const row = queues.value.find((one) => one.queue === queue);
  if (!row) return null;
  return (
    <>
      <StatusBadge status={row.status} problem={row.problem} />
      <span class="push" />
      {canWrite.value && row.status !== 'damaged' && <QueueActs queue={row} />}
    </>
  );
}

function Spans({ span, queue }: { span: string; queue: string | undefined }) {
  const choices = [...Object.entries(SPANS).map(([value, [label]]) => [value, label] as const), [ALL, 'All'] as const];
  return (
    <Choices
      label="How far ahead"
      chosen={span}
      choices={choices.map(([value, label]) => ({ value, label, href: linkTo('timeline', { queue, span: value }) }))}
    />
  );
}

function zoomed(from: number, to: number): Wanted {
  return { from, to, buckets: Math.min(60, to - from) };
}

function wantedOf(span: string, extent: TimelineResponse | undefined): Wanted | undefined {
  if (span === ALL) {
    if (!extent) return undefined;
    const start = extent.firstDueAt ?? extent.now;
    return { from: start, to: Math.max((extent.lastDueAt ?? start) + 1, start + MINUTE), buckets: BARS_OF_ALL };
  }
  const [, ms, width] = SPANS[span] ?? SPANS['24h']!;
  const start = Math.floor(now() / width) * width;
  return { from: start, to: start + ms, buckets: Math.round(ms / width) };
}

interface ShownProps {
  readonly timeline: TimelineResponse;
  readonly queue: string | undefined;
  readonly forecast: ForecastResponse | undefined;
  readonly isZoomed: boolean;
}

function Shown({ timeline, queue, forecast, isZoomed }: ShownProps) {
  const sf = timeOf(route.value.params['sf']);
  const st = timeOf(route.value.params['st']);
  const isOfAll = route.value.params['span'] === ALL;
  const brushed: Brushed | undefined = useMemo(() => (st === undefined ? undefined : { from: sf, to: st }), [sf, st]);
  const brush = (chosen: Brushed) => change({ sf: chosen.from, st: chosen.to }, { replace: true });
  // Where the overdue lie within the time that is shown, a strip for them would show them twice.
  const overdue = isZoomed || isOfAll ? 0 : timeline.overdue;
  const bars: Bars = { ...timeline, overdue };
  const waits = timeline.overdue + timeline.after + timeline.counts.length > 0 && timeline.firstDueAt !== undefined;
  return (
    <>
      <Summary timeline={timeline} forecast={forecast} />
      <section class="card" aria-label="When jobs fall due">
        <header>
          <h2>Jobs by due time</h2>
          <span class="muted small">each column {duration(timeline.widthMs)}</span>
          <span class="push" />
          <button
            type="button"
            class="button slim"
            aria-pressed={asTable.value === 'yes'}
            onClick={() => (asTable.value = asTable.value === 'yes' ? 'no' : 'yes')}
          >
            {asTable.value === 'yes' ? 'As chart' : 'As table'}
          </button>
        </header>
        {waits ? (
          <Histogram
            bars={bars}
            late={forecast ? forecast.peaks.map(({ from, until }) => ({ from, to: until })) : []}
            brushed={brushed}
            onBrush={brush}
          />
        ) : (
          <Empty title="Nothing waits">
            <p>Jobs show up here when they are enqueued.</p>
          </Empty>
        )}
        {timeline.left > 0 && (
          <p class="foot">{count(timeline.left)} queues are not in this sum. Choose one to see it.</p>
        )}
      </section>
      {brushed && (
        <BrushedRange
          queue={queue}
          range={brushed}
          onClose={() => change({ sf: undefined, st: undefined }, { replace: true })}
        />
      )}
      {forecast && <Ahead forecast={forecast} />}
    </>
  );
}

function Summary({ timeline, forecast }: { timeline: TimelineResponse; forecast: ForecastResponse | undefined }) {
  const { overdue, counts, after, firstDueAt, lastDueAt, to } = timeline;
  const inside = counts.reduce((sum, many) => sum + many, 0);
  const next = firstDueAt !== undefined && firstDueAt > now() ? firstDueAt : undefined;
  return (
    <dl class="figures">
      <Figure
        name="Overdue"
        tone={overdue > 0 ? 'warn' : ''}
        note={
          forecast?.clearAt !== undefined && overdue > 0 ? (
            <>
              gone <Relative at={forecast.clearAt} />
            </>
          ) : undefined
        }
      >
        {count(overdue)}
      </Figure>
      <Figure
        name="In this time"
        note={
          next === undefined ? undefined : (
            <>
              first <Relative at={next} />
            </>
          )
        }
      >
        {count(inside)}
      </Figure>
      <Figure name="Fullest column" note={inside > 0 ? near(peakAt(timeline), now(), zone.value) : undefined}>
        {count(Math.max(0, ...counts))}
      </Figure>
      <Figure
        name={`After ${near(to, now(), zone.value)}`}
        note={
          lastDueAt === undefined ? undefined : (
            <>
              last <Relative at={lastDueAt} />
            </>
          )
        }
      >
        {count(after)}
      </Figure>
    </dl>
  );
}

function peakAt({ from, widthMs, counts }: TimelineResponse): number {
  return from + counts.indexOf(Math.max(...counts)) * widthMs;
}

const BASES = {
  given: 'as given',
  measured: 'as measured while there was more to do than could be started',
  slots: 'from slots and the duration of runs, the most that can be expected',
} as const;

/** In words what the shaded parts of the chart are. */
function Ahead({ forecast: { rate, basis, processes, paused, peaks } }: { forecast: ForecastResponse }) {
  return (
    <section class="card pad stack" aria-label="Forecast">
      <h2>Forecast, next 24 hours</h2>
      {rate === undefined || basis === undefined ? (
        <p class="muted">
          No process works on this queue, or none has run jobs yet: how fast they would start is not known.
        </p>
      ) : (
        <p class="muted">
          {processes === 1 ? 'One process starts' : `${count(processes)} processes start`}{' '}
          {rate < 10 ? rate.toFixed(1) : count(Math.round(rate))} jobs a second, {BASES[basis]}.
          {paused && ' The queue is paused: this is as if it were resumed now.'}
        </p>
      )}
      {rate !== undefined && peaks.length === 0 && <p class="good">All jobs will start in time.</p>}
      {peaks.length > 0 && (
        <ul class="stack">
          {peaks.map(({ from, until, jobs: many, latestMs, latestDueAt }) => (
            <li key={from}>
              <strong class="warn">up to {duration(latestMs)} late</strong>: {jobs(many)} due from{' '}
              {absolute(from, zone.value)} on, started by {near(until, now(), zone.value)}. The latest is due{' '}
              {near(latestDueAt, now(), zone.value)}.
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
