import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { oneLetterOff } from '../job/near-names.js';

/**
 * Names of queues in options that this process knows from nowhere else, and that are one letter off a name without such an entry. A
 * misspelt one would give its settings to no job and its handlers none, and as a name that is known it would be no misspelling
 * elsewhere either.
 *
 * @param handlers those that were found, consumed here or not
 * @param defined the queues of `forFeature()`
 * @returns whole sentences for the log
 */
export function misspeltQueues(
  { queues, consume }: Pick<ResolvedModuleOptions, 'queues' | 'consume'>,
  handlers: readonly { readonly queue: string }[],
  defined: Iterable<string>,
): string[] {
  const warnings: string[] = [];
  const handled = handlers.map(({ queue }) => queue);
  const known = new Set([...handled, ...defined]);
  const unset = [...known].filter((queue) => !(queue in queues));
  for (const queue of Object.keys(queues)) {
    const meant = known.has(queue) ? undefined : oneLetterOff(queue, unset);
    if (meant === undefined) continue;
    warnings.push(
      `forRoot({ queues }): nothing here handles or defines queue "${queue}", but there is "${meant}", which has no entry. If both exist, ` +
        `give "${meant}" one as well, {} will do; then this is not said.`,
    );
  }
  if (typeof consume === 'boolean') return warnings;
  const left = handled.filter((queue) => !consume.includes(queue));
  for (const queue of consume) {
    const meant = handled.includes(queue) ? undefined : oneLetterOff(queue, left);
    if (meant === undefined) continue;
    warnings.push(
      `forRoot({ consume }): no handler here is for queue "${queue}", but there is one for "${meant}", which the list leaves out. Correct ` +
        'the name, or remove it from the list.',
    );
  }
  return warnings;
}
