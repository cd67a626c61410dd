import type { GlobalEnhancerSelection } from './global-enhancers.js';

/** Names of handlers, and of those among them that an author should hear about. */
export interface Findings {
  readonly handlers: readonly unknown[];
  /** Their ValidationPipe has no class to validate the payload against. */
  readonly unvalidated: readonly string[];
  /** Their ValidationPipe meets an array of payloads. */
  readonly unvalidatedBatches: readonly string[];
  /** Global enhancers that are selected do not run around them. */
  readonly unguarded: readonly string[];
}

/** Warnings about settings that are allowed but probably a mistake, one or two sentences each. */
export function bootWarnings(
  globals: GlobalEnhancerSelection,
  { handlers, unvalidated, unvalidatedBatches, unguarded }: Findings,
): string[] {
  const warnings: string[] = [];
  if (unvalidated.length > 0) {
    warnings.push(
      `A ValidationPipe checks nothing in the payload of ${unvalidated.join(', ')}: its type is an interface, a union, ` +
        'unknown, imported by `import type`, or the compiler emits no decorator metadata. Use a class, imported as a ' +
        'value, or a schema: defineQueue(name, { schema }).',
    );
  }
  if (unvalidatedBatches.length > 0) {
    warnings.push(
      `A ValidationPipe checks nothing in the payloads of ${unvalidatedBatches.join(', ')}: it does not look into the ` +
        'array that a batch handler receives. Use a definition or @JobPayload with a schema, or new ParseArrayPipe({ items }).',
    );
  }
  if (unguarded.length > 0) {
    warnings.push(
      `${globals.scopedNames().join(', ')}: request-scoped or transient, so not run around ${unguarded.join(', ')}, ` +
        'whose class is provided by a value or a factory. List the class itself in providers.',
    );
  }
  const ignored = globals.ignoredPerJobNames();
  if (handlers.length > 0 && ignored.length > 0) {
    warnings.push(
      `${ignored.join(', ')}: left out of handlers, but request-scoped, so Nest makes one for each job all the same, and with ` +
        'it a new instance of the handler class. Its constructor must bear a REQUEST that is a DelayQueueRequest.',
    );
  }
  return warnings;
}
