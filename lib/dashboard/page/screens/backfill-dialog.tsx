import { useEffect, useState } from 'preact/hooks';
import { count, fromInput, toInput } from '../format.js';
import { asProblem, now, troubleText } from '../live.js';
import { Ask } from '../parts/dialog.js';
import { say } from '../parts/toasts.js';
import { act } from '../server.js';
import { zone } from '../settings.js';

const DAY = 86_400_000;

/** Makes the jobs of occurrences of the past: counted first. */
export function BackfillDialog({ id, queue, onClose }: { id: string; queue: string; onClose: () => void }) {
  const [start, setStart] = useState(() => toInput(now() - DAY, zone.value));
  const [end, setEnd] = useState(() => toInput(now(), zone.value));
  const [trouble, setTrouble] = useState('');
  const from = fromInput(start, zone.value);
  const to = fromInput(end, zone.value);
  const isRange = from !== undefined && to !== undefined && from < to;

  // The API makes one for the last moment as well.
  const range = isRange ? { from, to: to - 1 } : undefined;
  const most = useMost(queue, id, range, setTrouble);

  const run = async () => {
    try {
      const { made = 0 } = await act('schedules/backfill', { queue, id, ...range! });
      say(`${count(made)} occurrences of ${id} made.`);
      onClose();
    } catch (error) {
      setTrouble(troubleText(error));
    }
  };
  const many = most === undefined ? 'occurrences' : `${count(most)} ${most === 1 ? 'occurrence' : 'occurrences'}`;
  return (
    <Ask
      title={`Backfill ${id}`}
      act={`Make ${many}`}
      ready={isRange && !!most}
      onSubmit={() => void run()}
      onClose={onClose}
    >
      <p class="muted">Makes jobs for the times of the past in this range; those that are there already are left.</p>
      <label class="field">
        <span>From{zone.value === 'utc' && ', UTC'}</span>
        <input
          class="input"
          type="datetime-local"
          step="1"
          value={start}
          onInput={({ currentTarget }) => setStart(currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Before{zone.value === 'utc' && ', UTC'}</span>
        <input
          class="input"
          type="datetime-local"
          step="1"
          value={end}
          onInput={({ currentTarget }) => setEnd(currentTarget.value)}
        />
      </label>
      {!isRange && <p class="bad">The range ends before it begins.</p>}
      {trouble && <p class="bad">{trouble}</p>}
    </Ask>
  );
}

/** How many it would be at most; undefined until the server has said so. */
function useMost(
  queue: string,
  id: string,
  range: { from: number; to: number } | undefined,
  onTrouble: (text: string) => void,
): number | undefined {
  const [most, setMost] = useState<number | undefined>(undefined);
  useEffect(() => {
    let isAsked = true;
    setMost(undefined);
    onTrouble('');
    if (!range) return;
    act('schedules/backfill', { queue, id, ...range, dryRun: true }).then(
      ({ made }) => isAsked && setMost(made ?? 0),
      (error) => isAsked && onTrouble(asProblem(error).message),
    );
    return () => {
      isAsked = false;
    };
  }, [range?.from, range?.to]);
  return most;
}
