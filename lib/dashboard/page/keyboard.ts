import { signal } from '@preact/signals';
import { go, queueInView } from './route.js';
import type { Screen } from './route.js';
import { isPaused } from './settings.js';

/** The dialog of the page itself that is open. */
export const openPanel = signal<'search' | 'help' | undefined>(undefined);

export const JUMPS: readonly (readonly [key: string, screen: Screen, name: string])[] = [
  ['q', 'queues', 'Queues'],
  ['t', 'timeline', 'Timeline'],
  ['j', 'jobs', 'Jobs'],
  ['d', 'dead', 'Dead letters'],
  ['l', 'lateness', 'Lateness'],
  ['p', 'processes', 'Processes'],
  ['s', 'schedules', 'Schedules'],
  ['r', 'server', 'Server'],
];

export const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['/', 'search for a queue, a job or a screen'],
  ['j  k', 'next and previous row'],
  ['x', 'select the row'],
  ['a', 'to the acts on what is selected'],
  ['Enter', 'open the row'],
  ['p', 'pause and resume the refreshing'],
  ...JUMPS.map(([key, , name]) => [`g ${key}`, name] as const),
  ['?', 'this help'],
  ['Esc', 'close what is open'],
];

const JUMP_MS = 1_500;
let jumpUntil = 0;

export function followKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || isTyping(event.target)) return;
    if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !document.querySelector('dialog[open]')) {
      event.preventDefault();
      openPanel.value = 'search';
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (press(event.key)) event.preventDefault();
  });
}

/** @returns whether the key means something here */
function press(key: string): boolean {
  const isJump = performance.now() < jumpUntil;
  jumpUntil = 0;
  if (isJump) {
    const jump = JUMPS.find(([letter]) => letter === key);
    if (jump) go(jump[1], { queue: queueInView.peek() });
    return jump !== undefined;
  }
  if (key === 'g') jumpUntil = performance.now() + JUMP_MS;
  else if (key === '/') openPanel.value = 'search';
  else if (key === '?') openPanel.value = 'help';
  else if (key === 'p') isPaused.value = !isPaused.value;
  else if (key === 'j') return moveRow(1);
  else if (key === 'k') return moveRow(-1);
  else if (key === 'a') return toTheActs();
  else if (key === 'x') return inRow('input[type=checkbox]');
  else if (key === 'Enter' && document.activeElement?.matches('[data-row]')) return inRow('a[data-open]');
  else return false;
  return true;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio'].includes(target.type);
  return target.matches('textarea, select, [contenteditable]');
}

function moveRow(by: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const present = rows.findIndex((row) => row.contains(document.activeElement));
  const next = present < 0 ? (by > 0 ? 0 : rows.length - 1) : present + by;
  rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus();
  return rows.length > 0;
}

/** They stand behind all rows: by Tab they would be as far away as the rows are many. */
function toTheActs(): boolean {
  const first = document.querySelector<HTMLElement>('.bar button');
  first?.focus();
  return first !== null;
}

function inRow(selector: string): boolean {
  const row = document.activeElement?.closest('[data-row]');
  const found = row?.querySelector<HTMLElement>(selector);
  found?.click();
  return found !== undefined && found !== null;
}
