import { useState } from 'preact/hooks';
import type { ScheduleRow } from '../../api.js';
import { count, duration } from '../format.js';
import { canWrite, loadState, me } from '../live.js';
import { Badge, Empty, Loading, Moment, Relative, StateBadge, Trouble } from '../parts/basic.js';
import { Payload } from '../parts/payload.js';
import { complain, say } from '../parts/toasts.js';
import { linkTo, route } from '../route.js';
import { act } from '../server.js';
import { QueuePicker } from '../shell.js';
import { useData } from '../use-data.js';
import { BackfillDialog } from './backfill-dialog.js';

export function SchedulesScreen() {
  const { queue, cursor } = route.value.params;
  const isThere = me.value?.features.schedules === true;
  const { value, problem, reload } = useData('schedules', isThere ? { queue, cursor } : undefined, { everyMs: 5_000 });
  if (!isThere) {
    return (
      <div class="card">
        <Empty title="This application has no schedules" />
      </div>
    );
  }
  return (
    <>
      <div class="row">
        <QueuePicker all="All queues" />
      </div>
      {problem && <Trouble problem={problem} retry={reload} />}
      {!value && !problem && <Loading />}
      {value && value.unreadable.length > 0 && (
        <p class="banner">
          {count(value.unreadable.length)} schedules were written by a newer version and cannot be read:{' '}
          {value.unreadable.map(({ id }) => id).join(', ')}
        </p>
      )}
      {value && (
        <section class="card" aria-label="Schedules">
          {value.schedules.length === 0 && (
            <Empty title="No schedules">
              <p>They are declared at a handler, or made by a call.</p>
            </Empty>
          )}
          {value.schedules.map((row) => (
            <Schedule key={`${row.queue}\n${row.id}`} row={row} reload={reload} />
          ))}
          {(cursor !== undefined || value.cursor !== undefined) && (
            <div class="foot">
              <span class="push" />
              {cursor !== undefined && (
                <a class="button slim" href={linkTo('schedules', { queue })}>
                  First page
                </a>
              )}
              {value.cursor !== undefined && (
                <a class="button slim" href={linkTo('schedules', { queue, cursor: value.cursor })}>
                  Next page
                </a>
              )}
            </div>
          )}
        </section>
      )}
    </>
  );
}

function timesText({ cron, timeZone, everyMs }: ScheduleRow): string {
  if (everyMs !== undefined) return `every ${duration(everyMs)}`;
  return `${cron ?? ''}${timeZone ? `, ${timeZone}` : ''}`;
}

function Schedule({ row, reload }: { row: ScheduleRow; reload: () => void }) {
  const { id, queue, paused, next, owner, jitterMs, counts, lastJob, missed, overlap } = row;
  const [first] = next;
  return (
    <article class="group-card schedule" data-row tabIndex={-1} aria-label={`Schedule ${id}`}>
      <div class="cause">
        <p>
          <strong class="wrap">{id}</strong> <a href={linkTo('timeline', { queue })}>{queue}</a>
        </p>
        <p>
          <code>{timesText(row)}</code>
          {jitterMs > 0 && <span class="muted">, jitter {duration(jitterMs)}</span>}
        </p>
        <p class="row small muted">
          {paused && <Badge tone="warn">paused</Badge>}
          <span>declared by {owner === 'code' ? 'a handler' : 'a call'}</span>
          <span>{count(counts.made)} made</span>
          {counts.missed > 0 && (
            <span class="warn">
              {count(counts.missed)} missed ({missed})
            </span>
          )}
          {counts.overlapped > 0 && (
            <span>
              {count(counts.overlapped)} skipped: the one before was not over ({overlap})
            </span>
          )}
        </p>
        {lastJob && (
          <p class="small">
            Last job{' '}
            <a class="mono" href={linkTo('job', { queue, id: lastJob.id })}>
              {lastJob.id}
            </a>{' '}
            {lastJob.state ? <StateBadge state={lastJob.state} /> : <span class="muted">has ended</span>}
          </p>
        )}
        <Ahead row={row} />
      </div>
      <p class="small">
        {first === undefined ? (
          <span class="muted">no next time</span>
        ) : (
          <>
            next <Relative at={first} />
          </>
        )}
      </p>
      {canWrite.value && <Acts row={row} reload={reload} />}
    </article>
  );
}

function Ahead({ row: { next, paused, payload } }: { row: ScheduleRow }) {
  return (
    <details>
      <summary>Next times and payload</summary>
      <div class="stack">
        <ol>
          {next.map((at) => (
            <li key={at}>
              <Moment at={at} />
            </li>
          ))}
        </ol>
        {next.length === 0 && <p class="muted">{paused ? 'None while it is paused.' : 'It has ended.'}</p>}
        <Payload payload={payload} />
      </div>
    </details>
  );
}

function Acts({ row: { id, queue, paused }, reload }: { row: ScheduleRow; reload: () => void }) {
  const [isFilling, fill] = useState(false);
  const run = async (
    path: 'schedules/pause' | 'schedules/resume' | 'schedules/trigger',
    said: (job?: string) => string,
  ) => {
    try {
      say(said((await act(path, { queue, id })).job));
    } catch (error) {
      complain(error);
    }
    reload();
    void loadState();
  };
  return (
    <div class="row">
      <button
        type="button"
        class="button slim"
        onClick={() =>
          void (paused
            ? run('schedules/resume', () => `${id} goes on.`)
            : run('schedules/pause', () => `${id} is paused: it makes no jobs.`))
        }
      >
        {paused ? 'Resume' : 'Pause'}
      </button>
      <button
        type="button"
        class="button slim"
        title="Makes one job now"
        onClick={() => void run('schedules/trigger', (job) => (job ? `Made the job ${job}.` : `${id} made no job.`))}
      >
        Trigger
      </button>
      <button type="button" class="button slim" onClick={() => fill(true)}>
        Backfill…
      </button>
      {isFilling && (
        <BackfillDialog
          id={id}
          queue={queue}
          onClose={() => {
            fill(false);
            reload();
          }}
        />
      )}
    </div>
  );
}
