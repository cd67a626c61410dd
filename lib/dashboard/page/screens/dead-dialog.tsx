import { useRef, useState } from 'preact/hooks';
import type { ApiDeadReason } from '../../api.js';
import { MOST } from '../acts.js';
import { count, jobs, parseDuration } from '../format.js';
import { loadState, troubleText } from '../live.js';
import { Ask } from '../parts/dialog.js';
import { say } from '../parts/toasts.js';
import { act } from '../server.js';
import { DurationField, SpreadField } from './act-form.js';

export type DeadAct = 'requeue' | 'remove';
export type DeadChoice = { readonly ids: readonly string[] } | { readonly all: true; readonly reason?: ApiDeadReason };

export interface DeadActDialogProps {
  readonly act: DeadAct;
  readonly queue: string;
  readonly chosen: DeadChoice;
  readonly many: number;
  /** Which ones, in a sentence. */
  readonly what: string;
  readonly onClose: (isDone: boolean) => void;
}

/** Requeues or removes dead letters, a thousand at once. */
export function DeadActDialog({ act: name, queue, chosen, many, what, onClose }: DeadActDialogProps) {
  const [delay, setDelay] = useState('');
  const [spread, setSpread] = useState(many > 100 ? '10m' : '');
  const [resetAttempts, setReset] = useState(true);
  const [done, setDone] = useState<number | undefined>(undefined);
  const [trouble, setTrouble] = useState('');
  const isStopped = useRef(false);
  const [delayMs, spreadMs] = [msOf(delay), msOf(spread)];
  const isRequeue = name === 'requeue';

  const run = async () => {
    setDone(0);
    const times = { ...(delayMs && { delay: delayMs }), ...(spreadMs && { spread: spreadMs }) };
    const call = isRequeue ? requeue(queue, chosen, many, { ...times, resetAttempts }) : remove(queue, chosen, many);
    let total = 0;
    try {
      for await (const so of call) {
        setDone((total = so));
        if (isStopped.current) break;
      }
      say(`${jobs(total)} of ${queue} ${isRequeue ? 'requeued' : 'removed'}.`);
      onClose(true);
    } catch (error) {
      setDone(undefined);
      setTrouble(`${troubleText(error)}${total > 0 ? ` ${jobs(total)} had been ${name}d.` : ''}`);
    }
    void loadState();
  };
  const verb = isRequeue ? 'Requeue' : 'Remove';
  const letters = `${count(many)} dead ${many === 1 ? 'letter' : 'letters'}`;
  return (
    <Ask
      title={`${verb} ${letters} of ${queue}`}
      act={done !== undefined ? `${count(done)} of ${count(many)}…` : `${verb} ${letters}`}
      danger={!isRequeue}
      ready={done === undefined && many > 0 && delayMs !== undefined && spreadMs !== undefined}
      onSubmit={() => void run()}
      onClose={() => {
        isStopped.current = true;
        onClose(done !== undefined);
      }}
    >
      <p class="wrap">{what}</p>
      {isRequeue ? (
        <RequeueFields
          many={many}
          delay={delay}
          spread={spread}
          reset={resetAttempts}
          onDelay={setDelay}
          onSpread={setSpread}
          onReset={setReset}
        />
      ) : (
        <p>They are removed for good.</p>
      )}
      {trouble && <p class="bad">{trouble}</p>}
    </Ask>
  );
}

interface RequeueFieldsProps {
  readonly many: number;
  readonly delay: string;
  readonly spread: string;
  readonly reset: boolean;
  readonly onDelay: (text: string) => void;
  readonly onSpread: (text: string) => void;
  readonly onReset: (reset: boolean) => void;
}

function RequeueFields({ many, delay, spread, reset, onDelay, onSpread, onReset }: RequeueFieldsProps) {
  return (
    <>
      <DurationField label="First one after (nothing: at once)" value={delay} onInput={onDelay} />
      <SpreadField many={many} value={spread} onInput={onSpread} />
      <label class="check">
        <input type="checkbox" checked={reset} onChange={({ currentTarget }) => onReset(currentTarget.checked)} />
        <span>
          All attempts again <span class="muted">(without this: exactly one more run)</span>
        </span>
      </label>
    </>
  );
}

/** 0 for nothing, undefined for what is no duration. */
function msOf(text: string): number | undefined {
  return text.trim() === '' ? 0 : parseDuration(text);
}

interface RequeueTimes {
  readonly delay?: number;
  readonly spread?: number;
  readonly resetAttempts: boolean;
}

/** Says after each call how many there were so far: no more than were confirmed, whatever dies meanwhile. */
async function* requeue(queue: string, chosen: DeadChoice, many: number, times: RequeueTimes): AsyncGenerator<number> {
  if ('ids' in chosen) {
    yield (await act('dead/requeue', { queue, ids: [...chosen.ids], ...times })).requeued;
    return;
  }
  let total = 0;
  let cursor: string | undefined;
  do {
    const next = { most: Math.min(MOST, many - total), ...(cursor !== undefined && { cursor }) };
    const answer = await act('dead/requeue', { queue, ...chosen, ...times, ...next });
    yield (total += answer.requeued);
    cursor = answer.cursor;
  } while (cursor !== undefined && total < many);
}

async function* remove(queue: string, chosen: DeadChoice, many: number): AsyncGenerator<number> {
  if ('ids' in chosen) {
    yield (await act('dead/remove', { queue, ids: [...chosen.ids] })).removed;
    return;
  }
  for (let total = 0; ;) {
    const { removed, remaining } = await act('dead/remove', { queue, all: true, most: Math.min(MOST, many - total) });
    yield (total += removed);
    if (removed === 0 || remaining === 0 || total >= many) return;
  }
}
