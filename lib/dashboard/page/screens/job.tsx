import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ErrorText, JobResponse } from '../../api.js';
import { commandFor } from '../command.js';
import { canWrite } from '../live.js';
import { Badge, Empty, Loading, Moment, REASONS, StateBadge, Trouble } from '../parts/basic.js';
import { Payload } from '../parts/payload.js';
import { say } from '../parts/toasts.js';
import { linkTo, route } from '../route.js';
import { useData } from '../use-data.js';
import { ActButtons, AnyDialog } from './act-buttons.js';
import type { AnyAct } from './act-buttons.js';
import { JobLife } from './job-life.js';

export function JobScreen() {
  const { queue, id } = route.value.params;
  if (queue === undefined || id === undefined) {
    return (
      <div class="card">
        <Empty title="No job is chosen" />
      </div>
    );
  }
  return <OneJob key={`${queue}\n${id}`} queue={queue} id={id} />;
}

function OneJob({ queue, id }: { queue: string; id: string }) {
  const { value, problem, reload } = useData('job', { queue, id }, { everyMs: 3_000 });
  const isGone = problem?.status === 404;
  return (
    <>
      <div class="row">
        <a href={linkTo('jobs', { queue, state: value?.state })}>{queue}</a>
        {value && <StateBadge state={value.state} />}
        {value?.quarantined && <Badge tone="warn">quarantine</Badge>}
        {value?.schedule && <Badge>of schedule {value.schedule.id}</Badge>}
        <span class="push" />
        {value && canWrite.value && <JobActs job={value} isGone={isGone} reload={reload} />}
      </div>
      {problem && !isGone && <Trouble problem={problem} retry={reload} />}
      {isGone && (
        <div class="card">
          <Empty title={value ? 'This job is gone' : 'There is no such job'}>
            <p>It was completed, cancelled or removed, or never was in {queue}.</p>
          </Empty>
        </div>
      )}
      {value ? <Facts job={value} /> : !problem && <Loading />}
    </>
  );
}

interface JobActsProps {
  readonly job: JobResponse;
  /** Nothing more can be done with it, but what was done is told until somebody has read it. */
  readonly isGone: boolean;
  readonly reload: () => void;
}

function JobActs({ job: { queue, id, state, dueAt }, isGone, reload }: JobActsProps) {
  const [act, setAct] = useState<AnyAct | undefined>(undefined);
  const close = () => {
    setAct(undefined);
    reload();
  };
  return (
    <>
      {!isGone && <ActButtons state={state} onAct={setAct} />}
      {act && <AnyDialog act={act} queue={queue} chosen={{ ids: [id] }} dueAt={dueAt} onClose={close} />}
    </>
  );
}

function Facts({ job }: { job: JobResponse }) {
  return (
    <>
      <section class="card pad" aria-label="Its life">
        <JobLife job={job} />
      </section>
      <div class="two">
        <div class="stack">
          <section class="card pad stack" aria-label="Payload">
            <div class="row">
              <h2>Payload</h2>
              <span class="push" />
              {'text' in job.payload && <Copy what="payload" text={job.payload.text} />}
            </div>
            <Payload payload={job.payload} />
          </section>
          <Errors job={job} />
        </div>
        <section class="card pad stack" aria-label="Facts">
          <FactList job={job} />
          <div class="row">
            <Copy what="id" text={job.id} />
            <Copy what="command" text={commandFor(job.queue, job.id)} />
          </div>
        </section>
      </div>
    </>
  );
}

function FactList({ job }: { job: JobResponse }) {
  const { attempts, maxAttempts, expiresAt, snoozes, options, context, schedule, deadReason, leaseUntil, shard } = job;
  return (
    <dl class="facts">
      {deadReason && <Fact name="Dead because">{REASONS[deadReason]}</Fact>}
      <Fact name="Attempts">
        {attempts}
        {maxAttempts !== undefined && ` of ${maxAttempts}`}
      </Fact>
      {job.group !== undefined && <Fact name="Group">{job.group}</Fact>}
      {job.priority !== undefined && <Fact name="Priority">{job.priority}</Fact>}
      {snoozes > 0 && <Fact name="Snoozes">{snoozes}</Fact>}
      {leaseUntil !== undefined && (
        <Fact name="Lease until">
          <Moment at={leaseUntil} />
        </Fact>
      )}
      {expiresAt !== undefined && (
        <Fact name="Expires">
          <Moment at={expiresAt} />
        </Fact>
      )}
      {job.quarantined && <Fact name="Quarantine">Its process was lost: it runs apart from others.</Fact>}
      {schedule && (
        <Fact name="Occurrence">
          {schedule.id}, <Moment at={schedule.at} />
        </Fact>
      )}
      {shard > 0 && <Fact name="Shard">{shard}</Fact>}
      {Object.entries(options).map(([name, value]) => (
        <Fact key={`option ${name}`} name={name}>
          {String(value)}
        </Fact>
      ))}
      {Object.entries(context ?? {}).map(([name, value]) => (
        <Fact key={`context ${name}`} name={`context ${name}`}>
          {value}
        </Fact>
      ))}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Errors({ job }: { job: JobResponse }) {
  const { lastError, errors } = job;
  if (!lastError) return null;
  const before = errors.slice(0, -1).reverse();
  return (
    <section class="card pad stack" aria-label="Errors">
      <div class="row">
        <h2>Last error</h2>
        {lastError.at !== undefined && (
          <span class="muted small">
            <Moment at={lastError.at} />
          </span>
        )}
      </div>
      <ErrorBlock error={lastError} />
      {before.length > 0 && (
        <details>
          <summary>{before.length} before it</summary>
          <ul class="stack">
            {before.map((error, n) => (
              <li key={n}>
                <span class="muted small">{error.at !== undefined && <Moment at={error.at} />}</span>
                <ErrorBlock error={error} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function ErrorBlock({ error }: { error: ErrorText }) {
  const { name, message, stack, cause, errors = [] } = error;
  return (
    <div class="stack">
      <p class="wrap">
        <strong class="bad">{name}</strong>
        {message && `: ${message}`}
      </p>
      {stack && (
        <pre class="text" tabIndex={0}>
          {stack}
        </pre>
      )}
      {cause && (
        <div>
          <p class="muted">Caused by</p>
          <ErrorBlock error={cause} />
        </div>
      )}
      {errors.map((one, n) => (
        <ErrorBlock key={n} error={one} />
      ))}
    </div>
  );
}

/** Browsers have a clipboard only over HTTPS and on localhost: elsewhere the text is shown, to be copied by hand. */
function Copy({ what, text }: { what: string; text: string }) {
  const [isShown, show] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say(`Copied the ${what}.`);
    } catch {
      show(true);
    }
  };
  return (
    <>
      <button type="button" class="button slim" onClick={() => void copy()}>
        Copy {what}
      </button>
      {isShown && (
        <input
          class="input"
          readOnly
          value={text}
          aria-label={`The ${what}, to copy`}
          onFocus={({ currentTarget }) => currentTarget.select()}
        />
      )}
    </>
  );
}
