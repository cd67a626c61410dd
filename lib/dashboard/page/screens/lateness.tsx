import type { LatenessMinute, LatenessResponse } from '../../api.js';
import { count, duration, near } from '../format.js';
import { me, now } from '../live.js';
import { Choices, Empty, Figure, Loading, Trouble } from '../parts/basic.js';
import { Lines } from '../parts/lines.js';
import { linkTo, route } from '../route.js';
import { asTable, zone } from '../settings.js';
import { QueuePicker } from '../shell.js';
import { useData } from '../use-data.js';
import { ChooseQueue } from './choose-queue.js';

const MINUTE = 60_000;
const SPANS: Readonly<Record<string, readonly [label: string, minutes: number]>> = {
  '1h': ['1 h', 60],
  '6h': ['6 h', 360],
  '24h': ['24 h', 1_440],
};

export function LatenessScreen() {
  const { queue, span = '1h' } = route.value.params;
  if (!me.value?.features.history) return <NeedsHistory what="How late jobs started" />;
  if (queue === undefined) return <ChooseQueue />;
  return <OfQueue queue={queue} span={span in SPANS ? span : '1h'} />;
}

export function NeedsHistory({ what }: { what: string }) {
  return (
    <div class="card">
      <Empty title={`${what} is not kept`}>
        <p>
          Import <code>DelayQueueHistoryModule</code> of <code>nestjs-delay-queue/history</code> in the processes of the
          application.
        </p>
      </Empty>
    </div>
  );
}

function OfQueue({ queue, span }: { queue: string; span: string }) {
  const to = Math.ceil(now() / MINUTE) * MINUTE;
  const from = to - SPANS[span]![1] * MINUTE;
  const { value, problem, reload } = useData(
    'lateness',
    { queue, from, to },
    { everyMs: 10_000, subject: `${queue} ${span}` },
  );
  return (
    <>
      <div class="row">
        <QueuePicker />
        <Choices
          label="How far back"
          chosen={span}
          choices={Object.entries(SPANS).map(([name, [label]]) => ({
            value: name,
            label,
            href: linkTo('lateness', { queue, span: name }),
          }))}
        />
        <button
          type="button"
          class="button slim push"
          aria-pressed={asTable.value === 'yes'}
          onClick={() => (asTable.value = asTable.value === 'yes' ? 'no' : 'yes')}
        >
          {asTable.value === 'yes' ? 'As chart' : 'As table'}
        </button>
      </div>
      {problem && <Trouble problem={problem} retry={reload} />}
      {value ? <Shown value={value} /> : !problem && <Loading />}
    </>
  );
}

function Shown({ value }: { value: LatenessResponse }) {
  const { total, lagMs, degradedMs, minutes, boundsMs } = value;
  const { lateness } = total;
  return (
    <>
      <dl class="figures">
        <Figure name="Lag now" tone={lagMs > degradedMs ? 'bad' : ''} note={`degraded above ${duration(degradedMs)}`}>
          {lagMs === 0 ? 'none' : duration(lagMs)}
        </Figure>
        <Figure name="Median" note="started so late, or sooner">
          {lateness ? duration(lateness.p50Ms) : '–'}
        </Figure>
        <Figure name="99 of 100">{lateness ? duration(lateness.p99Ms) : '–'}</Figure>
        <Figure name="Latest">{lateness ? mostText(lateness.mostMs, boundsMs) : '–'}</Figure>
        <Figure name="Started">{count(total.claimed)}</Figure>
        <Figure
          name="Failed runs"
          tone={total.failed > 0 ? 'warn' : ''}
          note={total.deadLettered > 0 ? `${count(total.deadLettered)} dead-lettered` : undefined}
        >
          {count(total.failed)}
        </Figure>
      </dl>
      {minutes.length === 0 ? (
        <div class="card">
          <Empty title="Nothing happened in this time">
            <p>The present minute shows up when it is over.</p>
          </Empty>
        </div>
      ) : asTable.value === 'yes' ? (
        <MinuteTable value={value} />
      ) : (
        <Charts value={value} />
      )}
    </>
  );
}

/** Above all bounds it is only known to be more than the last one. */
function mostText(mostMs: number | undefined, boundsMs: readonly number[]): string {
  return mostMs === undefined ? `over ${duration(boundsMs.at(-1) ?? 0)}` : duration(mostMs);
}

function Charts({ value: { from, to, minutes, degradedMs, boundsMs } }: { value: LatenessResponse }) {
  const byTime = new Map(minutes.map((minute) => [minute.at, minute]));
  const first = Math.ceil(from / MINUTE) * MINUTE;
  const times = Array.from({ length: Math.max(1, Math.floor((to - first) / MINUTE)) }, (_, n) => first + n * MINUTE);
  const over = (boundsMs.at(-1) ?? 0) * 1.5;
  const late = (of: (lateness: NonNullable<LatenessMinute['lateness']>) => number) =>
    times.map((at) => {
      const lateness = byTime.get(at)?.lateness;
      return lateness ? Math.max(1, of(lateness)) : null;
    });
  const many = (of: (minute: LatenessMinute) => number) =>
    times.map((at) => (byTime.has(at) ? of(byTime.get(at)!) : 0));
  const timeText = (at: number) => near(at, now(), zone.value);
  return (
    <>
      <section class="card stack" aria-label="How late jobs started">
        <header>
          <h2>How late jobs started</h2>
          <span class="muted small">by minute; the dashed line is where health calls the queue degraded</span>
        </header>
        <Lines
          name="how late jobs started"
          from={first}
          to={to}
          times={times}
          limit={degradedMs}
          isLog
          text={duration}
          timeText={timeText}
          lines={[
            { label: 'median', colour: 'accent-fill', values: late(({ p50Ms }) => p50Ms) },
            { label: '99 of 100', colour: 'warn-fill', values: late(({ p99Ms }) => p99Ms) },
            { label: 'latest', colour: 'muted', values: late(({ mostMs }) => mostMs ?? over) },
          ]}
        />
      </section>
      <section class="card stack" aria-label="What happened">
        <header>
          <h2>Jobs a minute</h2>
        </header>
        <Lines
          name="jobs a minute"
          from={first}
          to={to}
          times={times}
          text={count}
          timeText={timeText}
          lines={[
            { label: 'started', colour: 'accent-fill', values: many(({ claimed }) => claimed) },
            { label: 'completed', colour: 'good', values: many(({ completed }) => completed) },
            { label: 'failed', colour: 'bad-fill', values: many(({ failed }) => failed) },
          ]}
        />
      </section>
    </>
  );
}

function MinuteTable({ value: { minutes, boundsMs } }: { value: LatenessResponse }) {
  return (
    <section class="card" aria-label="Minutes">
      <div class="numbers" tabIndex={0} role="group" aria-label="The numbers of the charts">
        <table>
          <thead>
            <tr>
              <th>Minute</th>
              <th class="number">Median</th>
              <th class="number">99 of 100</th>
              <th class="number">Latest</th>
              <th class="number">Started</th>
              <th class="number">Completed</th>
              <th class="number">Failed</th>
            </tr>
          </thead>
          <tbody>
            {[...minutes].reverse().map(({ at, lateness, claimed, completed, failed }) => (
              <tr key={at}>
                <td class="nowrap">{near(at, now(), zone.value)}</td>
                <td class="number">{lateness ? duration(lateness.p50Ms) : '–'}</td>
                <td class="number">{lateness ? duration(lateness.p99Ms) : '–'}</td>
                <td class="number">{lateness ? mostText(lateness.mostMs, boundsMs) : '–'}</td>
                <td class="number">{count(claimed)}</td>
                <td class="number">{count(completed)}</td>
                <td class="number">{count(failed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
