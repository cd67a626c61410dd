import { useState } from 'preact/hooks';
import type { ApiJobState, JobRow, QueueState } from '../../api.js';
import type { Chosen } from '../acts.js';
import { count, fromInput, jobs, toInput } from '../format.js';
import { canWrite, queues } from '../live.js';
import { Choices, Empty, Loading, Trouble } from '../parts/basic.js';
import { change, go, linkTo, route, timeOf } from '../route.js';
import { useSelection } from '../selection.js';
import type { Selection } from '../selection.js';
import { zone } from '../settings.js';
import { QueuePicker } from '../shell.js';
import { useData } from '../use-data.js';
import { useNumberDue } from '../use-number-due.js';
import { ActButtons, AnyDialog } from './act-buttons.js';
import type { AnyAct } from './act-buttons.js';
import { ChooseQueue } from './choose-queue.js';
import { JobTable } from './job-table.js';

const STATES: readonly ApiJobState[] = ['delayed', 'due', 'running', 'dead', 'completed'];
const PAGE = 50;
const REFRESH_MS = 4_000;

export function JobsScreen() {
  const { queue } = route.value.params;
  if (queue === undefined) return <ChooseQueue />;
  return <JobsOfQueue queue={queue} />;
}

function rangeOfAddress(): { from: number | undefined; to: number | undefined } {
  const { from, to } = route.value.params;
  return { from: timeOf(from), to: timeOf(to) };
}

function JobsOfQueue({ queue }: { queue: string }) {
  const { cursor } = route.value.params;
  const { from, to } = rangeOfAddress();
  const state = STATES.find((one) => one === route.value.params['state']) ?? 'delayed';
  const range = state === 'running' ? {} : { from, to };
  const listKey = [queue, state, from, to, cursor].join('\n');
  const selection = useSelection(listKey);
  const isChoosing = selection.ids.value.size > 0;
  const query = { queue, state, ...range, cursor, limit: PAGE };
  const page = useData('jobs', query, { everyMs: isChoosing ? 0 : REFRESH_MS });
  const row = queues.value.find((one) => one.queue === queue);
  return (
    <>
      <div class="row">
        <QueuePicker />
        <States state={state} queue={queue} row={row} />
        <OneJob queue={queue} />
      </div>
      {state !== 'running' && <RangeFields queue={queue} state={state} />}
      {page.problem && <Trouble problem={page.problem} retry={page.reload} />}
      {page.value ? (
        <Page
          rows={page.value.jobs}
          next={page.value.cursor}
          state={state}
          queue={queue}
          selection={selection}
          reload={page.reload}
        />
      ) : (
        !page.problem && <Loading />
      )}
    </>
  );
}

function States({ state, queue, row }: { state: ApiJobState; queue: string; row: QueueState | undefined }) {
  const { from, to } = rangeOfAddress();
  const isWaiting = (name: ApiJobState) => name === 'delayed' || name === 'due';
  const choices = STATES.map((name) => ({
    value: name,
    label: (
      <>
        {name === 'dead' ? 'dead letters' : name}
        {row && <span class="tally">{count(row[name])}</span>}
      </>
    ),
    // A range of due times says nothing of other states, whose range is that of their end.
    href: linkTo('jobs', { queue, state: name, ...(isWaiting(name) && isWaiting(state) && { from, to }) }),
  }));
  return <Choices label="State" chosen={state} choices={choices} />;
}

function OneJob({ queue }: { queue: string }) {
  const [id, setId] = useState('');
  return (
    <form
      class="row push"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim()) go('job', { queue, id: id.trim() });
      }}
    >
      <input
        class="input"
        type="search"
        placeholder="Open by id"
        aria-label="Open a job by its id"
        value={id}
        onInput={({ currentTarget }) => setId(currentTarget.value)}
      />
    </form>
  );
}

function RangeFields({ queue, state }: { queue: string; state: ApiJobState }) {
  const { from, to } = rangeOfAddress();
  const what = state === 'dead' ? 'Died' : state === 'completed' ? 'Completed' : 'Due';
  const set = (name: 'from' | 'to', text: string) => {
    const at = text === '' ? undefined : fromInput(text, zone.value);
    change({ [name]: at, cursor: undefined });
  };
  const shown = (at: number | undefined) => (at === undefined ? '' : toInput(at, zone.value));
  return (
    <div class="row">
      <label class="row">
        <span class="muted">{what} from</span>
        <input
          class="input"
          type="datetime-local"
          step="1"
          value={shown(from)}
          onChange={({ currentTarget }) => set('from', currentTarget.value)}
        />
      </label>
      <label class="row">
        <span class="muted">before</span>
        <input
          class="input"
          type="datetime-local"
          step="1"
          value={shown(to)}
          onChange={({ currentTarget }) => set('to', currentTarget.value)}
        />
      </label>
      {(from !== undefined || to !== undefined) && (
        <a class="button plain slim" href={linkTo('jobs', { queue, state })}>
          Any time
        </a>
      )}
    </div>
  );
}

interface PageProps {
  readonly rows: readonly JobRow[];
  readonly next: string | undefined;
  readonly state: ApiJobState;
  readonly queue: string;
  readonly selection: Selection;
  readonly reload: () => void;
}

function Page({ rows, next, state, queue, selection, reload }: PageProps) {
  const { cursor } = route.value.params;
  const { from, to } = rangeOfAddress();
  return (
    <>
      <section class="card" aria-label="Jobs">
        {rows.length === 0 ? (
          <Nothing state={state} isRange={from !== undefined || to !== undefined} />
        ) : (
          <JobTable rows={rows} state={state} selection={selection} />
        )}
        {(cursor !== undefined || next !== undefined) && (
          <div class="foot">
            <span>{jobs(rows.length)} on this page</span>
            <span class="push" />
            {cursor !== undefined && (
              <a class="button slim" href={linkTo('jobs', { queue, state, from, to })}>
                First page
              </a>
            )}
            {next !== undefined && (
              <a class="button slim" href={linkTo('jobs', { queue, state, from, to, cursor: next })}>
                Next page
              </a>
            )}
          </div>
        )}
      </section>
      {canWrite.value && rows.length > 0 && (
        <Acts rows={rows} state={state} queue={queue} selection={selection} reload={reload} />
      )}
    </>
  );
}

const EMPTY: Readonly<Record<ApiJobState, readonly [string, string]>> = {
  delayed: ['No job is delayed', 'Jobs wait here until their due time.'],
  due: ['No job is due', 'Every job that is due has been claimed.'],
  running: ['Nothing runs', 'Jobs are here while their handler runs.'],
  dead: ['No dead letters', 'Jobs end here when their attempts are used up, or when they are discarded.'],
  completed: ['No completed jobs', 'They are kept only where the queue has keepCompleted.'],
};

function Nothing({ state, isRange }: { state: ApiJobState; isRange: boolean }) {
  const [title, text] = EMPTY[state];
  return (
    <Empty title={title}>
      <p>{isRange ? 'None is in this range.' : text}</p>
    </Empty>
  );
}

interface Open {
  readonly act: AnyAct;
  readonly chosen: Chosen;
}

/** What can be done with the selected rows, or with all that are due in the range. */
function Acts({ rows, state, queue, selection, reload }: Omit<PageProps, 'next'>) {
  const [open, setOpen] = useState<Open | undefined>(undefined);
  const [isOfRange, setOfRange] = useState(false);
  const { from, to } = rangeOfAddress();
  const ids = [...selection.ids.value];
  const hasRange = (state === 'delayed' || state === 'due') && (from !== undefined || to !== undefined);
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  if (ids.length === 0 && !open) return null;
  const close = (isDone: boolean) => {
    setOpen(undefined);
    if (!isDone) return;
    selection.set([]);
    setOfRange(false);
    reload();
  };
  return (
    <div class="bar fade" role="region" aria-label="Selected jobs">
      <strong role="status">
        {isOfRange ? <InRange queue={queue} range={range} /> : `${jobs(ids.length)} selected`}
      </strong>
      {!isOfRange && ids.length < rows.length && (
        <button type="button" class="button plain slim" onClick={() => selection.set(rows.map(({ id }) => id))}>
          All on this page
        </button>
      )}
      {!isOfRange && hasRange && (
        <button type="button" class="button plain slim" onClick={() => setOfRange(true)}>
          All in the range
        </button>
      )}
      <span class="push" />
      <ActButtons state={state} onAct={(act) => setOpen({ act, chosen: isOfRange ? { range } : { ids } })} />
      <button type="button" class="button plain" onClick={() => close(true)}>
        Let go
      </button>
      {open && <AnyDialog {...open} queue={queue} onClose={close} />}
    </div>
  );
}

function InRange({ queue, range: { from, to } }: { queue: string; range: { from?: number; to?: number } }) {
  const { value } = useNumberDue(queue, { from, to });
  return <>{value === undefined ? 'Counting…' : `${jobs(value)} in the range`}</>;
}
