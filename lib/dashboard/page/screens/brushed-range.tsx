import { useState } from 'preact/hooks';
import { absolute, count, fromInput, jobs, relative, toInput } from '../format.js';
import { canWrite, now, queues } from '../live.js';
import { Trouble } from '../parts/basic.js';
import type { Brushed } from '../parts/brush.js';
import { change, linkTo } from '../route.js';
import { zone } from '../settings.js';
import { useNumberDue } from '../use-number-due.js';
import { ActButtons, AnyDialog } from './act-buttons.js';
import type { AnyAct } from './act-buttons.js';

/** Of all queues, so many are asked how many of their jobs are in the range. */
const MOST_QUEUES = 30;

interface RangeProps {
  readonly queue: string | undefined;
  readonly range: Brushed;
  readonly onClose: () => void;
}

/** What can be done with the jobs of a brushed range. */
export function BrushedRange({ queue, range, onClose }: RangeProps) {
  const { from, to } = range;
  const [act, setAct] = useState<AnyAct | undefined>(undefined);
  const counted = useNumberDue(queue, range, 5_000);
  const many = counted.value;
  const wide = Math.max(1, to - (from ?? to));
  return (
    <section class="card pad stack fade" aria-label="Chosen range">
      <div class="row">
        <div role="status">
          <h2>{many === undefined ? 'Counting…' : `${jobs(many)} due in this range`}</h2>
        </div>
        <button type="button" class="button plain slim push" onClick={onClose}>
          Let go
        </button>
      </div>
      <Edges range={range} />
      {counted.problem && <Trouble problem={counted.problem} />}
      <div class="row">
        {queue !== undefined && (
          <a class="button" href={linkTo('jobs', { queue, state: from === undefined ? 'due' : 'delayed', from, to })}>
            List
          </a>
        )}
        {from !== undefined && wide > 60 && (
          <a class="button" href={linkTo('timeline', { queue, from, to })}>
            Zoom in
          </a>
        )}
        {queue !== undefined && canWrite.value && <ActButtons state="delayed" disabled={!many} onAct={setAct} />}
      </div>
      {queue === undefined && <ByQueue range={range} />}
      {act && queue !== undefined && (
        <AnyDialog
          act={act}
          queue={queue}
          chosen={{ range: { ...(from !== undefined && { from }), to } }}
          onClose={(isDone) => {
            setAct(undefined);
            if (isDone) counted.reload();
          }}
        />
      )}
    </section>
  );
}

/** The range in words, and to be typed: not everybody drags. */
function Edges({ range: { from, to } }: { range: Brushed }) {
  const set = (name: 'sf' | 'st', text: string) => {
    const at = fromInput(text, zone.value);
    if (at !== undefined) change({ [name]: at }, { replace: true });
  };
  return (
    <div class="row">
      {from === undefined ? (
        <span>All that are due before</span>
      ) : (
        <label class="row">
          <span>Due from</span>
          <input
            class="input"
            type="datetime-local"
            step="1"
            value={toInput(from, zone.value)}
            onChange={({ currentTarget }) => set('sf', currentTarget.value)}
          />
        </label>
      )}
      <label class="row">
        <span class={from === undefined ? 'unseen' : ''}>before</span>
        <input
          class="input"
          type="datetime-local"
          step="1"
          value={toInput(to, zone.value)}
          onChange={({ currentTarget }) => set('st', currentTarget.value)}
        />
      </label>
      <span class="muted small" title={absolute(to, zone.value)}>
        {zone.value === 'utc' && 'UTC · '}
        {from === undefined ? '' : relative(from, now())}
      </span>
    </div>
  );
}

/** An act is on one queue: here they are, with their numbers. */
function ByQueue({ range: { from, to } }: { range: Brushed }) {
  const waiting = queues.value.filter(({ delayed, due }) => delayed + due > 0).slice(0, MOST_QUEUES);
  return (
    <>
      <p class="muted">Choose a queue to act on its jobs:</p>
      <ul class="row">
        {waiting.map(({ queue }) => (
          <OfQueue key={queue} queue={queue} from={from} to={to} />
        ))}
      </ul>
    </>
  );
}

function OfQueue({ queue, from, to }: { queue: string; from: number | undefined; to: number }) {
  const many = useNumberDue(queue, { from, to }).value;
  if (!many) return null;
  return (
    <li>
      <button type="button" class="button slim" onClick={() => change({ queue }, { replace: true })}>
        {queue} <span class="muted">{count(many)}</span>
      </button>
    </li>
  );
}
