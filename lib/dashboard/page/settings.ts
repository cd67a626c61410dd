import { effect, signal } from '@preact/signals';
import type { Zone } from './format.js';

// What this browser remembers: nothing of any job.

export type Theme = 'system' | 'light' | 'dark';

export const theme = signal<Theme>(remembered('theme', ['system', 'light', 'dark']));
export const zone = signal<Zone>(remembered('zone', ['local', 'utc']));
/** Charts are shown as tables. */
export const asTable = signal<'no' | 'yes'>(remembered('as-table', ['no', 'yes']));
/** The user has stopped the refreshing. Not remembered: a page that stands still by itself would mislead. */
export const isPaused = signal(false);

export function followSettings(): void {
  effect(() => remember('theme', theme.value));
  effect(() => remember('zone', zone.value));
  effect(() => remember('as-table', asTable.value));
  effect(() => {
    if (theme.value === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme.value;
  });
}

/** The first of the values unless another one is remembered. */
function remembered<T extends string>(name: string, values: readonly [T, ...T[]]): T {
  try {
    const value = localStorage.getItem(`delay-queue:${name}`);
    return values.find((one) => one === value) ?? values[0];
  } catch {
    return values[0]; // A browser may forbid it.
  }
}

function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`delay-queue:${name}`, value);
  } catch {
    // Then it holds until the page is closed.
  }
}
