import { answerOf } from '../job/at-once.js';
import { currentJob } from '../job/current-job.js';
import type { ContextProvider } from '../job/current-job.js';
import { NO_CONTEXT } from '../job/delayed-job.js';
import { assertContext } from '../job/enqueue-options.js';
import type { ResolvedEnqueueOptions } from '../job/enqueue-options.js';

type Context = Readonly<Record<string, string>>;

/** Merged in this order: the context of the running job, the application's own context, the option of the call. */
export function contextOf(
  given: ResolvedEnqueueOptions['context'],
  provider: ContextProvider | undefined,
  call: string,
): Context | undefined {
  if (given === null) return undefined;
  const inherited = currentJob()?.context;
  const captured = provider && capturedBy(provider, call);
  if (!captured && (!inherited || inherited === NO_CONTEXT)) return given;
  return assertContext({ ...inherited, ...captured, ...given }, `${call}: context with what was inherited`);
}

/** @throws InvalidOptionError when `capture()` gives anything but a map of texts, or nothing */
function capturedBy(provider: ContextProvider, call: string): Context | undefined {
  const field = `${call}: contextProvider.capture()`;
  const captured: unknown = answerOf(() => provider.capture(), field);
  if (captured === undefined || captured === null) return undefined;
  // An object of a class is fine. An iterable (an array, a Map, text) has other keys than the caller meant.
  const isMap = typeof captured === 'object' && !(Symbol.iterator in captured);
  return assertContext(isMap ? { ...captured } : captured, field);
}
