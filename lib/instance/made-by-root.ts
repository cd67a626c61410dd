import { InvalidOptionError } from '../delay-queue.errors.js';

/**
 * Nest makes a service that is named in `providers` or `imports` without the parts that `forRoot()` gives to it.
 *
 * @returns the part @throws InvalidOptionError
 */
export function madeByRoot<Part>(part: Part | undefined, service: string): Part {
  if (part !== undefined) return part;
  throw new InvalidOptionError(
    `${service} stands in the \`providers\` or \`imports\` of a module. Remove it there, and import DelayQueueModule.forRoot() in ` +
      'the root module, which makes it injectable everywhere.',
  );
}
