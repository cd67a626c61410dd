import type { ApiJobState } from '../../api.js';
import type { Chosen, JobAct } from '../acts.js';
import { ActDialog } from './act-dialog.js';
import { ACT_WORDS } from './act-form.js';
import { DeadActDialog } from './dead-dialog.js';
import type { DeadAct } from './dead-dialog.js';

export type AnyAct = JobAct | DeadAct;

const OF_WAITING: readonly AnyAct[] = ['run-now', 'reschedule', 'cancel', 'move'];
const ACTS_OF: Readonly<Record<ApiJobState, readonly AnyAct[]>> = {
  delayed: OF_WAITING,
  due: OF_WAITING,
  running: ['cancel'],
  dead: ['requeue', 'remove'],
  completed: [],
};

/** What can be done with jobs in a state. */
export function ActButtons({ state, onAct, disabled = false }: ActButtonsProps) {
  return (
    <>
      {ACTS_OF[state].map((act) => (
        <button
          key={act}
          type="button"
          class={`button ${ACT_WORDS[act].isDanger ? 'danger' : ''}`}
          disabled={disabled}
          onClick={() => onAct(act)}
        >
          {ACT_WORDS[act].verb}…
        </button>
      ))}
    </>
  );
}

interface ActButtonsProps {
  readonly state: ApiJobState;
  readonly onAct: (act: AnyAct) => void;
  readonly disabled?: boolean;
}

interface AnyDialogProps {
  readonly act: AnyAct;
  readonly queue: string;
  readonly chosen: Chosen;
  readonly dueAt?: number | undefined;
  readonly onClose: (isDone: boolean) => void;
}

export function AnyDialog({ act, queue, chosen, dueAt, onClose }: AnyDialogProps) {
  if (act !== 'requeue' && act !== 'remove') {
    return <ActDialog act={act} queue={queue} chosen={chosen} dueAt={dueAt} onClose={onClose} />;
  }
  const ids = 'ids' in chosen ? chosen.ids : [];
  const what = ids.length === 1 ? ids[0]! : 'The selected ones.';
  return <DeadActDialog act={act} queue={queue} chosen={{ ids }} many={ids.length} what={what} onClose={onClose} />;
}
