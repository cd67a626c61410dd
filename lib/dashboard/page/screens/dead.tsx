import { useState } from 'preact/hooks';
import type { DeadGroup, DeadGroupsResponse } from '../../api.js';
import { count, jobs } from '../format.js';
import { canWrite } from '../live.js';
import { Badge, Empty, Loading, Moment, REASONS, Relative, Trouble } from '../parts/basic.js';
import { linkTo, route } from '../route.js';
import { QueuePicker } from '../shell.js';
import { useData } from '../use-data.js';
import { DeadActDialog } from './dead-dialog.js';
import type { DeadAct, DeadChoice } from './dead-dialog.js';
import { ChooseQueue } from './choose-queue.js';

interface Open {
  readonly act: DeadAct;
  readonly chosen: DeadChoice;
  readonly many: number;
  readonly what: string;
}

export function DeadScreen() {
  const { queue } = route.value.params;
  return queue === undefined ? <ChooseQueue /> : <DeadOfQueue key={queue} queue={queue} />;
}

function DeadOfQueue({ queue }: { queue: string }) {
  const [open, setOpen] = useState<Open | undefined>(undefined);
  const { value, problem, reload } = useData('dead-groups', { queue }, { everyMs: open ? 0 : 10_000 });
  return (
    <>
      <div class="row">
        <QueuePicker />
        <span class="push" />
        {value && value.total > 0 && (
          <>
            <a class="button slim" href={linkTo('jobs', { queue, state: 'dead' })}>
              List all
            </a>
            {canWrite.value && <ActsOnAll value={value} onOpen={setOpen} />}
          </>
        )}
      </div>
      {problem && <Trouble problem={problem} retry={reload} />}
      {value ? <Groups value={value} queue={queue} onOpen={setOpen} /> : !problem && <Loading />}
      {open && (
        <DeadActDialog
          {...open}
          queue={queue}
          onClose={(isDone) => {
            setOpen(undefined);
            if (isDone) reload();
          }}
        />
      )}
    </>
  );
}

function ActsOnAll({ value, onOpen }: { value: DeadGroupsResponse; onOpen: (open: Open) => void }) {
  const all = {
    chosen: { all: true } as const,
    many: value.total,
    what: 'All dead letters of the queue, the oldest first.',
  };
  return (
    <>
      <button type="button" class="button slim" onClick={() => onOpen({ act: 'requeue', ...all })}>
        Requeue all…
      </button>
      <button type="button" class="button slim danger" onClick={() => onOpen({ act: 'remove', ...all })}>
        Remove all…
      </button>
    </>
  );
}

function Groups({ value, queue, onOpen }: { value: DeadGroupsResponse; queue: string; onOpen: (open: Open) => void }) {
  const { total, looked, groups } = value;
  if (total === 0) {
    return (
      <div class="card">
        <Empty title="No dead letters">
          <p>Jobs end here when their attempts are used up, or when they are discarded.</p>
        </Empty>
      </div>
    );
  }
  return (
    <>
      <p class="muted">
        {looked < total
          ? `The newest ${count(looked)} of ${count(total)} dead letters, by their cause.`
          : `${count(total)} dead ${total === 1 ? 'letter' : 'letters'}, by cause.`}{' '}
        Numbers in messages are folded into #.
      </p>
      <section class="card" aria-label="Causes">
        {groups.map((group) => (
          <Group key={`${group.reason} ${group.error} ${group.message}`} group={group} queue={queue} onOpen={onOpen} />
        ))}
      </section>
    </>
  );
}

function Group({ group, queue, onOpen }: { group: DeadGroup; queue: string; onOpen: (open: Open) => void }) {
  const { reason, error, message, example, count: many, firstAt, lastAt, ids } = group;
  const cause = [error, message].filter(Boolean).join(': ') || REASONS[reason];
  const chosen = { chosen: { ids }, many: ids.length, what: cause };
  return (
    <article class="group-card" data-row tabIndex={-1} aria-label={`${jobs(many)}: ${cause}`}>
      <p class="many">
        {count(many)}
        <small>{many === 1 ? 'job' : 'jobs'}</small>
      </p>
      <div class="cause">
        <p>
          <Badge tone="bad">{REASONS[reason]}</Badge>
        </p>
        <p>
          {error && <strong>{error}</strong>}
          {error && message && ': '}
          {message}
        </p>
        {example && example !== message && <p class="muted small">Newest: {example}</p>}
        <p class="muted small">
          {many === 1 ? (
            <Moment at={lastAt} />
          ) : (
            <>
              first <Relative at={firstAt} />, last <Relative at={lastAt} />
            </>
          )}
        </p>
      </div>
      <div class="row">
        {ids[0] !== undefined && (
          <a data-open class="button slim" href={linkTo('job', { queue, id: ids[0] })}>
            Newest
          </a>
        )}
        {canWrite.value && (
          <>
            <button type="button" class="button slim" onClick={() => onOpen({ act: 'requeue', ...chosen })}>
              Requeue…
            </button>
            <button type="button" class="button slim danger" onClick={() => onOpen({ act: 'remove', ...chosen })}>
              Remove…
            </button>
          </>
        )}
      </div>
    </article>
  );
}
