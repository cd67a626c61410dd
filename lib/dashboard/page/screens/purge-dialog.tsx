import { useEffect, useRef, useState } from 'preact/hooks';
import { MOST } from '../acts.js';
import { count, jobs } from '../format.js';
import { asProblem, loadState, troubleText } from '../live.js';
import { Ask } from '../parts/dialog.js';
import { say } from '../parts/toasts.js';
import { act } from '../server.js';
import { total } from '../sums.js';

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
  const found = useNumbers(queue, states, setTrouble);
  const many = found && total(found, (of) => of.many);

  const run = async (confirmed: readonly OfState[]) => {
    let removed = 0;
    setDone(0);
    try {
      for await (const so of purge(queue, confirmed, typed)) {
        setDone((removed = so));
        if (isStopped.current) break;
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
      onSubmit={() => void run(found!)}
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

/** Says after each call how many there were so far: of no state more than were confirmed, whatever comes meanwhile. */
async function* purge(queue: string, confirmed: readonly OfState[], confirm: string): AsyncGenerator<number> {
  let so = 0;
  for (const { state, many } of confirmed) {
    for (let left = many; left > 0;) {
      const { removed } = await act('queue/purge', { queue, states: [state], confirm, most: Math.min(MOST, left) });
      yield (so += removed);
      left = removed === 0 ? 0 : left - removed;
    }
  }
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

interface OfState {
  readonly state: Purged;
  readonly many: number;
}

function useNumbers(
  queue: string,
  states: readonly Purged[],
  onTrouble: (text: string) => void,
): readonly OfState[] | undefined {
  const key = states.join();
  const [found, setFound] = useState<{ key: string; numbers: readonly OfState[] } | undefined>(undefined);
  useEffect(() => {
    let isAsked = true;
    const numberOf = async (state: Purged): Promise<OfState> => {
      const { removed } = await act('queue/purge', { queue, states: [state], dryRun: true });
      return { state, many: removed };
    };
    Promise.all(states.map(numberOf)).then(
      (numbers) => isAsked && setFound({ key, numbers }),
      (error) => isAsked && onTrouble(asProblem(error).message),
    );
    return () => {
      isAsked = false;
    };
  }, [queue, key]);
  return found?.key === key ? found.numbers : undefined;
}
