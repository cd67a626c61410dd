import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';

/** Rows that the user has marked; forgotten when the list is another one. */
export interface Selection {
  readonly ids: ReadonlySignal<ReadonlySet<string>>;
  readonly toggle: (id: string, on: boolean) => void;
  readonly set: (ids: readonly string[]) => void;
}

export function useSelection(listKey: string): Selection {
  return useMemo(() => {
    const ids = signal<ReadonlySet<string>>(new Set());
    return {
      ids,
      toggle: (id, on) => {
        const next = new Set(ids.peek());
        if (on) next.add(id);
        else next.delete(id);
        ids.value = next;
      },
      set: (all) => {
        ids.value = new Set(all);
      },
    };
  }, [listKey]);
}
