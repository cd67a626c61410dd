import type { QueueState } from '../../api.js';
import { change, go, linkTo, queueInView, route } from '../route.js';
import { count, duration, jobs } from '../format.js';
import { canWrite, now, queues, state } from '../live.js';
import { Choices, CountCell, Empty, Figure, Relative, StatusBadge } from '../parts/basic.js';
import { Histogram } from '../parts/histogram.js';
import { Spark } from '../parts/spark.js';
import { total } from '../sums.js';
import { useData } from '../use-data.js';
import { PauseButton } from './queue-acts.js';

/** So many queues and it is worth grouping them by the part of their name before the first dot. */
const WORTH_GROUPING = 6;

export function QueuesScreen() {
  const { filter, groups } = route.value.params;
  const shown = queues.value.filter(({ queue }) => !filter || queue.toLowerCase().includes(filter.toLowerCase()));
  const isGrouped = groups ? groups === 'yes' : queues.value.length >= WORTH_GROUPING;
  if (queues.value.length === 0) {
    return (
      <div class="card">
        <Empty title="No queues yet">
          <p>A queue shows up here with its first job.</p>
        </Empty>
      </div>
    );
  }
  return (
    <>
      <Totals />
      <Coming />
      <section class="card" aria-label="Queues">
        <header>
          <input
            class="input"
            type="search"
            placeholder="Filter by name"
            aria-label="Filter by name"
            value={filter ?? ''}
            onInput={({ currentTarget }) => change({ filter: currentTarget.value }, { replace: true })}
          />
          <span class="push" />
          <Choices
            label="Order"
            chosen={isGrouped ? 'yes' : 'no'}
            choices={[
              {
                value: 'yes',
                label: 'Groups',
                href: linkTo('queues', { filter, groups: 'yes', queue: queueInView.value }),
              },
              {
                value: 'no',
                label: 'List',
                href: linkTo('queues', { filter, groups: 'no', queue: queueInView.value }),
              },
            ]}
          />
        </header>
        {shown.length === 0 ? (
          <Empty title="No queue has this in its name" />
        ) : (
          <QueueTable queues={shown} isGrouped={isGrouped} />
        )}
        {state.value && state.value.more > 0 && (
          <p class="foot">
            {count(state.value.more)} more queues are not listed: the first {count(queues.value.length)} are.
          </p>
        )}
      </section>
    </>
  );
}

function Totals() {
  const all = queues.value;
  const troubled = all.filter(({ status }) => status !== 'ok').length;
  const late = Math.max(0, ...all.map(({ lagMs }) => lagMs));
  const present = now();
  const next = all.flatMap(({ nextDueAt = 0 }) => (nextDueAt > present ? nextDueAt : []));
  const dead = total(all, (queue) => queue.dead);
  return (
    <dl class="figures">
      <Figure name="Queues" note={troubled > 0 ? <span class="warn">{count(troubled)} not ok</span> : 'all ok'}>
        {count(all.length + (state.value?.more ?? 0))}
      </Figure>
      <Figure
        name="Delayed"
        note={
          next.length > 0 ? (
            <>
              next <Relative at={Math.min(...next)} />
            </>
          ) : undefined
        }
      >
        {count(total(all, ({ delayed }) => delayed))}
      </Figure>
      <Figure name="Due" note={late > 0 ? `oldest waits ${duration(late)}` : 'none waits'}>
        {count(total(all, ({ due }) => due))}
      </Figure>
      <Figure name="Running">{count(total(all, ({ running }) => running))}</Figure>
      <Figure name="Dead letters" tone={dead > 0 ? 'bad' : ''}>
        {count(dead)}
      </Figure>
    </dl>
  );
}

const DAY = 86_400_000;
const COLUMN = DAY / 96;

/** What falls due when, of all queues: what no list of queues tells. */
function Coming() {
  const from = Math.floor(now() / COLUMN) * COLUMN;
  const query = { from, to: from + DAY, buckets: DAY / COLUMN };
  const { value } = useData('timeline', query, { everyMs: 10_000, subject: 'coming' });
  if (!value || (value.firstDueAt === undefined && value.overdue === 0)) return null;
  return (
    <section class="card" aria-label="The next 24 hours">
      <header>
        <h2>The next 24 hours</h2>
        <span class="muted small">jobs of all queues by due time, each column 15 min</span>
      </header>
      <Histogram
        bars={value}
        late={[]}
        brushed={undefined}
        height={170}
        onBrush={({ from: sf, to: st }) => go('timeline', { sf, st })}
      />
    </section>
  );
}

function QueueTable({ queues: shown, isGrouped }: { queues: readonly QueueState[]; isGrouped: boolean }) {
  const groups = isGrouped ? groupsOf(shown) : [['', shown] as const];
  return (
    <div class="scroll">
      <table class="cards">
        <thead>
          <tr>
            <th>Queue</th>
            <th>State</th>
            <th class="number">Delayed</th>
            <th class="number">Due</th>
            <th class="number">Running</th>
            <th class="number">Dead</th>
            <th class="number">Lag</th>
            <th>Next due</th>
            <th>Next hour</th>
            <th>
              <span class="unseen">Acts</span>
            </th>
          </tr>
        </thead>
        {groups.map(([name, members]) => (
          <tbody key={name}>
            {name && (
              <tr>
                <td class="group" colSpan={10}>
                  <strong>{name}</strong> {members.length} queues,{' '}
                  {jobs(total(members, ({ delayed, due }) => delayed + due))} waiting
                </td>
              </tr>
            )}
            {members.map((queue) => (
              <QueueRow key={queue.queue} queue={queue} />
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

/** By what stands before the first dot; queues that are alone with it come first, without a heading. */
function groupsOf(all: readonly QueueState[]): (readonly [string, readonly QueueState[]])[] {
  const groups = new Map<string, QueueState[]>();
  for (const queue of all) {
    const name = queue.queue.includes('.') ? queue.queue.slice(0, queue.queue.indexOf('.')) : '';
    groups.set(name, [...(groups.get(name) ?? []), queue]);
  }
  const single = [...groups].filter(([name, members]) => name === '' || members.length < 2);
  const others = [...groups].filter(([name, members]) => name !== '' && members.length >= 2);
  const first = single.flatMap(([, members]) => members);
  return [...(first.length > 0 ? [['', first] as const] : []), ...others];
}

function QueueRow({ queue: row }: { queue: QueueState }) {
  const { queue, status, problem, delayed, due, running, dead, lagMs, nextDueAt, nextHour, shards } = row;
  return (
    <tr data-row tabIndex={-1}>
      <td class="main-cell">
        <a data-open href={linkTo('timeline', { queue })}>
          {queue}
        </a>
        {shards > 1 && <span class="muted small"> {shards} shards</span>}
        {problem && <div class="bad small">{problem}</div>}
      </td>
      <td>
        <StatusBadge status={status} problem={problem} />
        {row.publishingPaused && status !== 'publishingPaused' && (
          <>
            {' '}
            <StatusBadge status="publishingPaused" />
          </>
        )}
      </td>
      <CountCell label="Delayed" value={delayed} />
      <CountCell label="Due" value={due} tone={due > 0 && lagMs > 0 ? 'warn' : ''} />
      <CountCell label="Running" value={running} />
      <td class={`number ${dead === 0 ? 'zero' : ''}`} data-label="Dead">
        {dead === 0 ? (
          '0'
        ) : (
          <a class="bad" href={linkTo('dead', { queue })} aria-label={`${count(dead)} dead letters of ${queue}`}>
            {count(dead)}
          </a>
        )}
      </td>
      <td class={`number nowrap ${lagMs === 0 ? 'zero' : status === 'lagging' ? 'bad' : ''}`} data-label="Lag">
        {lagMs === 0 ? '0' : duration(lagMs)}
      </td>
      <td class={`nowrap ${nextDueAt === undefined ? 'zero muted' : ''}`} data-label="Next">
        <Relative at={nextDueAt} />
      </td>
      <td class="whole">
        <Spark counts={nextHour} />
      </td>
      <td class="acts-cell">{canWrite.value && status !== 'damaged' && <PauseButton queue={row} />}</td>
    </tr>
  );
}
