import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { JobAct } from '../acts.js';
import { fromInput, parseDuration, rate, toInput } from '../format.js';
import { now, queues } from '../live.js';
import { zone } from '../settings.js';

export const ACT_WORDS: Readonly<Record<JobAct | 'requeue' | 'remove', { verb: string; isDanger: boolean }>> = {
  'run-now': { verb: 'Run now', isDanger: false },
  reschedule: { verb: 'Reschedule', isDanger: false },
  cancel: { verb: 'Cancel', isDanger: true },
  move: { verb: 'Move', isDanger: false },
  requeue: { verb: 'Requeue', isDanger: false },
  remove: { verb: 'Remove', isDanger: true },
};

export interface ActForm {
  readonly fields: ComponentChildren;
  /** What the request says beside the jobs; undefined while the form is not filled in. */
  readonly more: Readonly<Record<string, unknown>> | undefined;
}

const ACT_FORMS: Readonly<Record<JobAct, (form: FormInput) => ActForm>> = {
  'run-now': () => ({
    fields: <p class="muted">They become due at once, and run as soon as a slot is free.</p>,
    more: {},
  }),
  reschedule: useRescheduleForm,
  cancel: useCancelForm,
  move: useMoveForm,
};

interface FormInput {
  readonly queue: string;
  readonly many: number;
  readonly from: number | undefined;
}

export function useActForm(act: JobAct, queue: string, many: number, from: number | undefined): ActForm {
  return ACT_FORMS[act]({ queue, many, from });
}

function useCancelForm(): ActForm {
  const [running, setRunning] = useState(false);
  const fields = (
    <label class="check">
      <input type="checkbox" checked={running} onChange={({ currentTarget }) => setRunning(currentTarget.checked)} />
      <span>
        Running ones as well <span class="muted">(their signals abort; without this they are left)</span>
      </span>
    </label>
  );
  return { fields, more: running ? { running } : {} };
}

function useMoveForm({ queue }: FormInput): ActForm {
  const [target, setTarget] = useState('');
  const list = useId();
  const isItself = target.trim() === queue;
  const isNew = target.trim() !== '' && !queues.value.some(({ queue: name }) => name === target.trim());
  const fields = (
    <label class="field">
      <span>To the queue</span>
      <input
        class="input"
        list={list}
        required
        autofocus
        value={target}
        aria-invalid={isItself}
        onInput={({ currentTarget }) => setTarget(currentTarget.value)}
      />
      <datalist id={list}>
        {queues.value
          .filter(({ queue: name }) => name !== queue)
          .map(({ queue: name }) => (
            <option key={name} value={name} />
          ))}
      </datalist>
      <span>There they keep id, due time and payload, and have all their attempts.</span>
      {isNew && (
        <span class="warn" role="status">
          No queue has this name: the move makes it, and its jobs wait for a process that works on it.
        </span>
      )}
    </label>
  );
  return { fields, more: target.trim() !== '' && !isItself ? { target: target.trim() } : undefined };
}

type How = 'by' | 'delay' | 'at';

const HOWS: readonly (readonly [How, string])[] = [
  ['by', 'Later by'],
  ['delay', 'So long from now'],
  ['at', 'At a time'],
];

function useRescheduleForm({ many, from }: FormInput): ActForm {
  const [how, setHow] = useState<How>(many > 1 || from === undefined ? 'by' : 'at');
  const [time, setTime] = useState('1h');
  const [at, setAt] = useState(() => toInput(from ?? now(), zone.value));
  const [spread, setSpread] = useState('');
  const group = useId();
  const ms = parseDuration(time);
  const moment = fromInput(at, zone.value);
  const to = how === 'at' ? moment !== undefined && { at: moment } : ms !== undefined && { [how]: ms };
  const spreadMs = spread.trim() === '' ? 0 : parseDuration(spread);
  const fields = (
    <>
      <fieldset class="stack">
        <legend class="unseen">New due time</legend>
        <div class="row">
          {HOWS.map(([value, label]) => (
            <label key={value} class="check">
              <input type="radio" name={group} checked={how === value} onChange={() => setHow(value)} />
              {label}
            </label>
          ))}
        </div>
        {how === 'at' ? (
          <input
            class="input"
            type="datetime-local"
            step="1"
            aria-label={`Due time, ${zone.value === 'utc' ? 'UTC' : 'local time'}`}
            value={at}
            onInput={({ currentTarget }) => setAt(currentTarget.value)}
          />
        ) : (
          <DurationField label={how === 'by' ? 'Later by' : 'From now'} value={time} onInput={setTime} />
        )}
      </fieldset>
      {how !== 'by' && many > 1 && <SpreadField many={many} value={spread} onInput={setSpread} />}
    </>
  );
  const isReady = to !== false && (how === 'by' || spreadMs !== undefined);
  return { fields, more: isReady ? { to, ...(how !== 'by' && spreadMs ? { spread: spreadMs } : {}) } : undefined };
}

export function DurationField({ label, value, onInput, autofocus = false }: DurationFieldProps) {
  const isWrong = value.trim() !== '' && parseDuration(value) === undefined;
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="input"
        value={value}
        placeholder="30s, 10m, 1h 30m, 2d"
        aria-invalid={isWrong}
        autofocus={autofocus}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      {isWrong && <span class="bad">Write a duration such as 30s, 10m, 1h 30m or 2d.</span>}
    </label>
  );
}

interface DurationFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly autofocus?: boolean;
}

/** Says in words how often a job becomes due then. */
export function SpreadField({
  many,
  value,
  onInput,
}: {
  many: number;
  value: string;
  onInput: (value: string) => void;
}) {
  const ms = value.trim() === '' ? 0 : parseDuration(value);
  return (
    <div class="stack">
      <DurationField label="Spread evenly over (nothing: all at once)" value={value} onInput={onInput} />
      {ms !== undefined && (
        <p class={`small ${ms === 0 && many > 100 ? 'warn' : 'muted'}`} role="status">
          {ms === 0 ? 'All become due at once.' : `${rate(many, ms).replace(/^\w/, (c) => c.toUpperCase())}.`}
        </p>
      )}
    </div>
  );
}
