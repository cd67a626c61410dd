import type { ComponentChildren } from 'preact';
import type { ApiDeadReason, ApiJobState, QueueStatus } from '../../api.js';
import { absolute, count, near, relative } from '../format.js';
import { now } from '../live.js';
import type { ServerProblem } from '../server.js';
import { zone } from '../settings.js';

export type Tone = 'good' | 'warn' | 'bad' | 'accent' | '';

export function Badge({ tone = '', title, children }: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

const STATUS: Readonly<Record<QueueStatus, readonly [Tone, string, string]>> = {
  ok: ['good', 'ok', 'Its jobs start in time.'],
  paused: ['warn', 'paused', 'No process claims its jobs until it is resumed.'],
  publishingPaused: ['warn', 'publishing paused', 'Enqueues are refused; stored jobs go on.'],
  lagging: ['bad', 'lagging', 'Its oldest due job has waited for long.'],
  unattended: ['bad', 'nobody consumes', 'Jobs are due, and no live process claims them.'],
  damaged: ['bad', 'damaged', 'It cannot be read.'],
};

export function StatusBadge({ status, problem }: { status: QueueStatus; problem?: string | undefined }) {
  const [tone, text, meaning] = STATUS[status];
  return (
    <Badge tone={tone} title={problem ?? meaning}>
      {text}
    </Badge>
  );
}

const STATES: Readonly<Record<ApiJobState, Tone>> = {
  delayed: 'accent',
  due: 'warn',
  running: 'good',
  dead: 'bad',
  completed: '',
};

export function StateBadge({ state }: { state: ApiJobState }) {
  return <Badge tone={STATES[state]}>{state === 'dead' ? 'dead letter' : state}</Badge>;
}

export const REASONS: Readonly<Record<ApiDeadReason, string>> = {
  exhausted: 'all attempts used',
  discarded: 'discarded by its handler',
  leaseLost: 'its process was lost too often',
  undecodable: 'payload cannot be decoded',
  invalid: 'payload does not fit the schema',
  expired: 'expired',
};

/** How far away it is; the exact time is said by its title. */
export function Relative({ at }: { at: number | undefined }) {
  if (at === undefined) return <span class="muted">none</span>;
  return (
    <time dateTime={iso(at)} title={absolute(at, zone.value)}>
      {relative(at, now())}
    </time>
  );
}

/** "in 3 min" and the clock beside it. */
export function When({ at }: { at: number | undefined }) {
  if (at === undefined) return <span class="muted">unknown</span>;
  return (
    <span class="nowrap">
      <Relative at={at} /> <span class="muted small">{near(at, now(), zone.value)}</span>
    </span>
  );
}

export function Moment({ at }: { at: number }) {
  return (
    <time dateTime={iso(at)} title={relative(at, now())}>
      {absolute(at, zone.value)}
    </time>
  );
}

export function iso(at: number): string | undefined {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : undefined;
}

/** A number of a table: nothing is paler than something. */
export function CountCell({ value, label, tone = '' }: { value: number; label: string; tone?: Tone }) {
  return (
    <td class={`number ${value === 0 ? 'zero' : tone}`} data-label={label}>
      {count(value)}
    </td>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty fade">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export function Loading() {
  return (
    <div class="empty late" role="status">
      Reading…
    </div>
  );
}

export function Trouble({ problem, retry }: { problem: ServerProblem; retry?: () => void }) {
  return (
    <div class="banner bad fade" role="alert">
      <span>{problem.message}</span>
      {retry && (
        <button type="button" class="button slim" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export interface Choice {
  readonly value: string;
  readonly label: ComponentChildren;
  readonly href: string;
}

/** A few values of which one is chosen; each is a link, as the address is the state. */
export function Choices({ label, choices, chosen }: { label: string; choices: readonly Choice[]; chosen: string }) {
  return (
    <nav class="choices" aria-label={label}>
      {choices.map(({ value, label: text, href }) => (
        <a key={value} href={href} aria-current={value === chosen ? 'true' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

export function Figure({ name, tone = '', note, children }: FigureProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={tone}>
        {children}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

interface FigureProps {
  readonly name: string;
  readonly tone?: Tone;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
}
