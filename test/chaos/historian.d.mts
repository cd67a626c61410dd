import type { HistoryEvent, Stamp } from './history.js';

type Told<Event> = Event extends unknown ? Omit<Event, keyof Stamp> : never;

export interface Historian {
  /** Stamps and appends the event before it returns. */
  write(event: Told<HistoryEvent>): void;
}

export function openHistory(file: string, p: string): Historian;
export function watchForStalls(historian: Historian): void;
