import { useEffect, useRef, useState } from 'preact/hooks';
import type { Reads } from '../api.js';
import { asProblem, isHidden, setClock } from './live.js';
import { read, urlOf } from './server.js';
import type { Query, ServerProblem } from './server.js';
import { isPaused } from './settings.js';

export interface Data<T> {
  /** The last answer to this question, also while the next one is awaited. */
  readonly value: T | undefined;
  readonly problem: ServerProblem | undefined;
  readonly reload: () => void;
}

interface Held<T> {
  readonly subject: string;
  readonly value?: T;
  readonly problem?: ServerProblem;
}

export interface DataOptions {
  /** Asks again after so long, while the page is seen and not paused. 0: never. */
  readonly everyMs?: number;
  /** What makes it another question. While it is the same, the last answer is shown until the next one comes. */
  readonly subject?: string;
}

/**
 * Asks the server. An answer to another question is never shown: between a click and its answer there is nothing rather than the
 * wrong jobs.
 */
export function useData<P extends keyof Reads>(
  path: P,
  query: Query | undefined,
  { everyMs = 0, subject: named }: DataOptions = {},
): Data<Reads[P]> {
  const url = query ? urlOf(path, query) : '';
  const subject = named ?? url;
  const [held, hold] = useState<Held<Reads[P]>>({ subject });
  const [turn, reload] = useState(0);
  const tag = useRef<{ url: string; tag: string | undefined }>({ url: '', tag: undefined });
  const stands = isPaused.value || isHidden.value;

  useEffect(() => {
    if (!query) return;
    const question = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      try {
        const known = tag.current.url === url ? tag.current.tag : undefined;
        const answer = await read(path, query, { tag: known, signal: question.signal });
        tag.current = { url, tag: answer.tag };
        const { fresh } = answer;
        if (fresh && 'now' in fresh) setClock(fresh.now as number);
        hold((before) => ({ subject, ...((fresh ?? before.value) && { value: fresh ?? before.value! }) }));
      } catch (error) {
        if (question.signal.aborted) return;
        hold((before) => ({ ...(before.subject === subject ? before : { subject }), problem: asProblem(error) }));
      }
      if (everyMs > 0 && !stands && !question.signal.aborted) timer = setTimeout(() => void ask(), everyMs);
    };
    void ask();
    return () => {
      question.abort();
      clearTimeout(timer);
    };
    // The address says all that the query holds.
  }, [url, turn, everyMs, stands]);

  const isOfThis = held.subject === subject;
  return {
    value: isOfThis ? held.value : undefined,
    problem: isOfThis ? held.problem : undefined,
    reload: () => reload((n) => n + 1),
  };
}
