import { useState } from 'preact/hooks';
import type { QueueState } from '../../api.js';
import { loadState } from '../live.js';
import { complain, say } from '../parts/toasts.js';
import { act } from '../server.js';
import { PurgeDialog } from './purge-dialog.js';

type Switch = 'pause' | 'resume' | 'pause-publishing' | 'resume-publishing';

const SWITCHED: Readonly<Record<Switch, readonly [said: string, undo: Switch, undoLabel: string]>> = {
  pause: ['is paused: no process claims its jobs', 'resume', 'Resume'],
  resume: ['goes on', 'pause', 'Pause'],
  'pause-publishing': ['refuses new jobs', 'resume-publishing', 'Resume'],
  'resume-publishing': ['takes new jobs', 'pause-publishing', 'Pause'],
};

/** It can be undone, so it is done without a question. */
async function turn(queue: string, to: Switch): Promise<void> {
  const [said, undo, label] = SWITCHED[to];
  try {
    await act(`queue/${to}`, { queue });
    say(`${queue} ${said}.`, { label, run: () => void turn(queue, undo) });
  } catch (error) {
    complain(error);
  }
  await loadState();
}

export function PauseButton({ queue: { queue, paused } }: { queue: QueueState }) {
  return (
    <div class="queue-acts">
      <button
        type="button"
        class="button slim"
        aria-label={`${paused ? 'Resume' : 'Pause'} ${queue}`}
        onClick={() => void turn(queue, paused ? 'resume' : 'pause')}
      >
        {paused ? 'Resume' : 'Pause'}
      </button>
    </div>
  );
}

export function QueueActs({ queue: row }: { queue: QueueState }) {
  const [isPurging, purge] = useState(false);
  const { queue, publishingPaused } = row;
  return (
    <>
      <PauseButton queue={row} />
      <button
        type="button"
        class="button slim"
        title={publishingPaused ? 'Take new jobs again' : 'Refuse new jobs; stored ones go on'}
        onClick={() => void turn(queue, publishingPaused ? 'resume-publishing' : 'pause-publishing')}
      >
        {publishingPaused ? 'Resume publishing' : 'Pause publishing'}
      </button>
      <button type="button" class="button slim danger" onClick={() => purge(true)}>
        Purge…
      </button>
      {isPurging && <PurgeDialog queue={queue} onClose={() => purge(false)} />}
    </>
  );
}
