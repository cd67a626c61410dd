import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

export interface DialogProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly kind?: 'wide' | 'high' | '';
}

/** The browser's own dialog: it keeps the focus, closes by Escape, and gives the focus back. */
export function Dialog({ title, onClose, children, kind = '' }: DialogProps) {
  const frame = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    const dialog = frame.current!;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={frame}
      class={kind}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === frame.current && onClose()}
    >
      <header>
        <h2 id={id} class="wrap">
          {title}
        </h2>
      </header>
      {children}
    </dialog>
  );
}

export interface AskProps extends Omit<DialogProps, 'kind'> {
  /** What is done, with its number: "Cancel 1,234 jobs". */
  readonly act: string;
  readonly danger?: boolean;
  readonly ready?: boolean;
  readonly onSubmit: () => void;
}

/** Asks before something is done. */
export function Ask({ title, onClose, act, danger = false, ready = true, onSubmit, children }: AskProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) onSubmit();
        }}
      >
        <div class="body">{children}</div>
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Keep as it is
          </button>
          <button type="submit" class={`button main-act ${danger ? 'danger' : ''}`} disabled={!ready}>
            {act}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
