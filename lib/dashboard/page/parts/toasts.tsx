import { signal } from '@preact/signals';
import { troubleText } from '../live.js';
import { Icon } from './icons.js';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: '' | 'bad';
  readonly undo?: { readonly label: string; readonly run: () => void };
}

const SHOWN_MS = 7_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Says what was done. What went wrong stays until it is closed. */
export function say(text: string, undo?: Toast['undo']): void {
  const id = show({ text, tone: '', ...(undo && { undo }) });
  setTimeout(() => close(id), SHOWN_MS);
}

export function complain(error: unknown): void {
  show({ text: troubleText(error), tone: 'bad' });
}

function show(toast: Omit<Toast, 'id'>): number {
  toasts.value = [...toasts.value, { ...toast, id: ++last }].slice(-4);
  return last;
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone, undo }) => (
        <div key={id} class={`toast fade ${tone}`}>
          <span>{text}</span>
          {undo && (
            <button
              type="button"
              class="button slim push"
              onClick={() => {
                close(id);
                undo.run();
              }}
            >
              {undo.label}
            </button>
          )}
          <button
            type="button"
            class={`button plain slim ${undo ? '' : 'push'}`}
            aria-label="Close"
            onClick={() => close(id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
