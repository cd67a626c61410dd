import { useRef, useState } from 'preact/hooks';
import type { ActOutcome } from '../../api.js';
import { actOnJobs, OUTCOMES, outcomesOf } from '../acts.js';
import type { Chosen, JobAct, Report } from '../acts.js';
import { absolute, count, jobs } from '../format.js';
import { loadState, troubleText } from '../live.js';
import { Ask, Dialog } from '../parts/dialog.js';
import { useNumberDue } from '../use-number-due.js';
import { zone } from '../settings.js';
import { ACT_WORDS, useActForm } from './act-form.js';

export interface ActDialogProps {
  readonly act: JobAct;
  readonly queue: string;
  readonly chosen: Chosen;
  /** Due time of the only job, from which a new one is chosen. */
  readonly dueAt?: number | undefined;
  readonly onClose: (isDone: boolean) => void;
}

/** Counts, asks, acts call by call, and says what became of the jobs. */
export function ActDialog({ act, queue, chosen, dueAt, onClose }: ActDialogProps) {
  const due = useNumberDue(queue, 'range' in chosen ? chosen.range : undefined).value;
  const many = 'range' in chosen ? due : chosen.ids.length;
  const form = useActForm(act, queue, many ?? 0, dueAt ?? ('range' in chosen ? chosen.range.from : undefined));
  const [done, setDone] = useState<number | undefined>(undefined);
  const [report, setReport] = useState<Report | undefined>(undefined);
  const isStopped = useRef(false);

  const run = async () => {
    setDone(0);
    const result = await actOnJobs({ act, queue, chosen, more: form.more! }, (so) => {
      setDone(so);
      return !isStopped.current;
    });
    setReport(result);
    void loadState();
  };
  if (report) return <Results report={report} act={act} queue={queue} onClose={() => onClose(true)} />;
  const { verb, isDanger } = ACT_WORDS[act];
  const what = many === undefined ? 'jobs' : jobs(many);
  if (done !== undefined) {
    return <Progress title={`${verb} ${what}`} done={done} all={many ?? 0} onStop={() => (isStopped.current = true)} />;
  }
  return (
    <Ask
      title={`${verb} ${what} of ${queue}`}
      act={`${verb} ${what}`}
      danger={isDanger}
      ready={many !== undefined && many > 0 && form.more !== undefined}
      onSubmit={() => void run()}
      onClose={() => onClose(false)}
    >
      <p>
        <Extent chosen={chosen} many={many} />
      </p>
      {form.fields}
    </Ask>
  );
}

function Extent({ chosen, many }: { chosen: Chosen; many: number | undefined }) {
  if ('ids' in chosen) {
    return <>{chosen.ids.length === 1 ? <span class="mono wrap">{chosen.ids[0]}</span> : 'The selected jobs.'}</>;
  }
  const { from, to } = chosen.range;
  return (
    <>
      {many === 0 ? 'No job is' : 'All that are'} due {from !== undefined && `from ${absolute(from, zone.value)} on`}
      {from !== undefined && to !== undefined && ' and '}
      {to !== undefined && `before ${absolute(to, zone.value)}`}.
    </>
  );
}

function Progress({ title, done, all, onStop }: { title: string; done: number; all: number; onStop: () => void }) {
  const part = all > 0 ? Math.min(1, done / all) : 0;
  return (
    <Dialog title={title} onClose={onStop}>
      <div class="body" role="status">
        <svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect width={part * 100} height="6" />
        </svg>
        <p class="muted">
          {count(done)} of {count(all)}
        </p>
      </div>
      <footer>
        <button type="button" class="button" onClick={onStop}>
          Stop
        </button>
      </footer>
    </Dialog>
  );
}

const MOST_SHOWN = 200;

function Results({ report, act, queue, onClose }: ResultsProps) {
  const { results, isPartial, error } = report;
  const outcomes = outcomesOf(results);
  const left = results.filter(({ outcome }) => !OUTCOMES[outcome]?.[1]);
  return (
    <Dialog title={`${ACT_WORDS[act].verb}: what became of ${jobs(results.length)} of ${queue}`} onClose={onClose}>
      <div class="body">
        {error !== undefined && <p class="bad">{troubleText(error)}</p>}
        {results.length === 0 && error === undefined && <p>No job was left to act on.</p>}
        <ul class="stack">
          {outcomes.map(([outcome, many]) => (
            <li key={outcome}>
              <strong>{count(many)}</strong> <Outcome outcome={outcome} act={act} />
            </li>
          ))}
        </ul>
        {isPartial && <p class="warn">It was stopped before its end: there are more jobs.</p>}
        {left.length > 0 && <Left left={left} />}
      </div>
      <footer>
        <button type="button" class="button main-act" onClick={onClose} autofocus>
          Done
        </button>
      </footer>
    </Dialog>
  );
}

interface ResultsProps {
  readonly report: Report;
  readonly act: JobAct;
  readonly queue: string;
  readonly onClose: () => void;
}

function Outcome({ outcome, act }: { outcome: ActOutcome; act: JobAct }) {
  const [text, isDone] = OUTCOMES[outcome] ?? [outcome, false];
  const words = outcome === 'rescheduled' && act === 'run-now' ? 'are due now' : text;
  return <span class={isDone ? '' : 'warn'}>{words}</span>;
}

function Left({ left }: { left: Report['results'] }) {
  return (
    <details>
      <summary>Which ones were left</summary>
      <ul class="text mono">
        {left.slice(0, MOST_SHOWN).map(({ id, outcome }) => (
          <li key={id}>
            {id}: {outcome}
          </li>
        ))}
        {left.length > MOST_SHOWN && <li>… and {count(left.length - MOST_SHOWN)} more</li>}
      </ul>
    </details>
  );
}
