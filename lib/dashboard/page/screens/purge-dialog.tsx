import { useEffect, useRef, useState } from 'preact/hooks';
import { count, jobs } from '../format.js';
import { asProblem, loadState, troubleText } from '../live.js';
import { Ask } from '../parts/dialog.js';
import { say } from '../parts/toasts.js';
import { act } from '../server.js';

type Purged = 'waiting' | 'dead' | 'completed';

const STATES: readonly (readonly [Purged, string])[] = [
  ['waiting', 'Waiting jobs, delayed and due'],
  ['dead', 'Dead letters'],
  ['completed', 'Completed jobs that are kept'],
];

/** Removes for good: it tells the number, and wants the name of the queue. */
export function PurgeDialog({ queue, onClose }: { queue: string; onClose: () => void }) {
  const [states, choose] = useState<readonly Purged[]>(['waiting', 'dead']);
  const [typed, type] = useState('');
  const [done, setDone] = useState<number | undefined>(undefined);
  const [trouble, setTrouble] = useState('');
  const isStopped = useRef(false);
  const many = useNumber(queue, states, setTrouble);

  const run = async () => {
    let removed = 0;
    try {
      for (;;) {
        setDone(removed);
        const answer = await act('queue/purge', { queue, states: [...states], confirm: typed });
        removed += answer.removed;
        if (answer.remaining === 0 || answer.removed === 0 || isStopped.current) break;
      }
      say(`${jobs(removed)} of ${queue} removed.`);
      onClose();
    } catch (error) {
      setDone(undefined);
      setTrouble(`${troubleText(error)}${removed > 0 ? ` ${jobs(removed)} had been removed.` : ''}`);
    }
    await loadState();
  };
  const isReady = done === undefined && typed === queue && many !== undefined && many > 0;
  return (
    <Ask
      title={`Purge ${queue}`}
      act={done !== undefined ? `${count(done)} removed…` : `Remove ${many === undefined ? 'jobs' : jobs(many)}`}
      danger
      ready={isReady}
      onSubmit={() => void run()}
      onClose={() => {
        isStopped.current = true;
        onClose();
      }}
    >
      <WhichStates states={states} onChoose={choose} />
      <p role="status">
        {many === undefined ? 'Counting…' : <strong>{jobs(many)}</strong>}{' '}
        {many !== undefined && 'will be removed for good.'} Running jobs stay.
      </p>
      <label class="field">
        <span>
          Type the name of the queue: <code class="wrap">{queue}</code>
        </span>
        <input
          class="input"
          autoComplete="off"
          spellcheck={false}
          autofocus
          value={typed}
          onInput={({ currentTarget }) => type(currentTarget.value)}
        />
      </label>
      {trouble && <p class="bad">{trouble}</p>}
    </Ask>
  );
}

function WhichStates({ states, onChoose }: { states: readonly Purged[]; onChoose: (states: Purged[]) => void }) {
  return (
    <fieldset class="stack">
      <legend class="unseen">Which jobs</legend>
      {STATES.map(([state, label]) => (
        <label key={state} class="check">
          <input
            type="checkbox"
            checked={states.includes(state)}
            onChange={({ currentTarget }) =>
              onChoose(currentTarget.checked ? [...states, state] : states.filter((one) => one !== state))
            }
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

function useNumber(queue: string, states: readonly Purged[], onTrouble: (text: string) => void): number | undefined {
  const key = states.join();
  const [found, setFound] = useState<{ key: string; many: number } | undefined>(undefined);
  useEffect(() => {
    let isAsked = true;
    const ask = async () => {
      try {
        const many = key === '' ? 0 : (await act('queue/purge', { queue, states: [...states], dryRun: true })).removed;
        if (isAsked) setFound({ key, many });
      } catch (error) {
        if (isAsked) onTrouble(asProblem(error).message);
      }
    };
    void ask();
    return () => {
      isAsked = false;
    };
  }, [queue, key]);
  return found?.key === key ? found.many : undefined;
}
