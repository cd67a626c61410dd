export type JobState = 'delayed' | 'due' | 'running' | 'dead' | 'completed';

/** The letters by which scripts tell the states of a job. */
export const STATE_LETTERS = { delayed: 'l', due: 'd', running: 'r', dead: 'x', completed: 'c' } as const;

const STATES = new Map(Object.entries(STATE_LETTERS).map(([state, letter]) => [letter as string, state as JobState]));

/** @returns undefined for any other letter: there is no job */
export function stateOf(letter: string | undefined): JobState | undefined {
  return STATES.get(letter!);
}
