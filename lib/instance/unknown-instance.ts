import { UnknownInstanceError } from '../delay-queue.errors.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { shown } from '../job/duration.js';

/** @param call what names the instance; begins the message   @param declared what there is */
export function unknownInstance(call: string, name: string, declared: Iterable<string>): UnknownInstanceError {
  const known = Array.from(declared, (one) => `"${one}"`).join(', ');
  const options = name === DEFAULT_INSTANCE ? '' : `{ name: ${shown(name)} }`;
  return new UnknownInstanceError(
    `${call}: no DelayQueueModule.forRoot() declares instance ${shown(name)}. Declared: ${known || 'none'}. ` +
      `${known ? 'Name one of these, or import' : 'Import'} DelayQueueModule.forRoot(${options}) in the root module.`,
  );
}
