import { stateOf } from './letters.js';
import type { JobState } from './letters.js';

/** What lib/lua/cancel.lua, reschedule.lua, signal.lua and update.lua say of a job. */
export interface ChangeReply<Changed extends string> {
  readonly outcome: Changed | 'running' | 'dead' | 'notFound';
  /** Of the job that was found; undefined without one. */
  readonly state: JobState | undefined;
  /** When it is due, ms; undefined unless it was changed and is still there. */
  readonly dueAt: number | undefined;
}

const REFUSED = { r: 'running', x: 'dead', n: 'notFound' } as const;

export function parseCancel(answer: string): ChangeReply<'cancelled'> {
  return parseChange(answer, 'c', 'cancelled');
}

export function parseReschedule(answer: string): ChangeReply<'rescheduled'> {
  return parseChange(answer, 's', 'rescheduled');
}

export function parseUpdate(answer: string): ChangeReply<'updated'> {
  return parseChange(answer, 'u', 'updated');
}

export function parseSignal(answer: string): ChangeReply<'signalled'> {
  return parseChange(answer, 'g', 'signalled');
}

/** Before it changes a job the script shows its header, to be merged: undefined when it has answered otherwise. */
export function headerToMerge(answer: string): string | undefined {
  return answer.startsWith('h ') ? answer.slice(2) : undefined;
}

/** What the scripts say of many jobs: for each of them as many words. */
export function parseWords(answer: string, perJob: number): string[][] {
  const words = answer.split(' ');
  return Array.from({ length: words.length / perJob }, (_, n) => words.slice(n * perJob, (n + 1) * perJob));
}

function parseChange<Changed extends string>(answer: string, letter: string, changed: Changed): ChangeReply<Changed> {
  const [outcome, state, due] = answer.split(' ');
  return {
    outcome: outcome === letter ? changed : REFUSED[outcome as keyof typeof REFUSED],
    state: stateOf(state),
    dueAt: outcome === letter && due !== undefined ? Number(due) : undefined,
  };
}
