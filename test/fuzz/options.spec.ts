import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defineQueue, DelayQueueModule, OnDelayed } from '../../lib/index.js';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { resolveHandlerSettings } from '../../lib/handlers/handler-settings.js';
import { parseDuration } from '../../lib/job/duration.js';
import { resolveEnqueueOptions } from '../../lib/job/enqueue-options.js';
import { fateNow, fuzz, FUZZ_MS } from './fuzz.js';
import { badOptions, DEFINITION, ENQUEUE, goodOptions, HANDLER, mixture, MODULE } from './options.js';
import type { Mixture } from './options.js';
import { anyName, hostile, isName, nothingUseful, plainName, unboxed } from './values.js';

/** Both, of options that are sound each by itself. */
const both = ({ options, isSpoilt }: Mixture, one: string, other: string) =>
  !isSpoilt && options[one] !== undefined && options[other] !== undefined;

/** A queue that has the name of another one's shard. */
const sharesKeys = (queues: Record<string, { shards?: number }> = {}) =>
  Object.entries(queues).some(([name, { shards = 1 }]) =>
    Array.from({ length: shards > 1 ? shards : 0 }, (_, n) => `${name}:${n}`).some((shard) =>
      Object.hasOwn(queues, shard),
    ),
  );

const CODES = /^ERR_DQ_INVALID_(?:OPTION|DELAY|ID|QUEUE)$/;

function expectFate(fate: string, isWrong: boolean): string {
  if (isWrong) expect(fate).toMatch(CODES);
  else expect(fate).toBe('accepted');
  return fate;
}

describe('Options', () => {
  it(
    'are taken as they are or refused',
    () =>
      fuzz('options of a job', mixture(ENQUEUE), {
        check: (input) => {
          const { options, isSpoilt } = input;
          let resolved: ReturnType<typeof resolveEnqueueOptions> | undefined;
          const fate = fateNow(() => (resolved = resolveEnqueueOptions(options, 'mail')));
          const contradicts =
            both(input, 'delay', 'at') ||
            both(input, 'expiresIn', 'expiresAt') ||
            (both(input, 'id', 'idFromPayload') && options.idFromPayload === true);
          expectFate(fate, isSpoilt || contradicts);
          if (!resolved) return fate;
          const { delay, at } = options;
          const due =
            at !== undefined ? Math.ceil(Number(at)) : delay !== undefined ? parseDuration(delay, '') : undefined;
          expect(resolved.due?.ms).toBe(due);
          expect(resolved.due?.kind).toBe(at !== undefined ? 'at' : delay !== undefined ? 'delay' : undefined);
          expect(resolved.id).toBe(options.id);
          if (options.context) expect(Object.entries(resolved.context!)).toEqual(Object.entries(options.context));
          return fate;
        },
      }),
    FUZZ_MS,
  );

  it(
    'are taken as they are or refused',
    () =>
      fuzz('options of the module', mixture(MODULE), {
        check: (input) => {
          const { options, isSpoilt } = input;
          let resolved: ReturnType<typeof resolveModuleOptions> | undefined;
          const fate = fateNow(() => (resolved = resolveModuleOptions(options, 'default')));
          // Nothing at all means the defaults.
          if (options === null) return expectFate(fate, false);
          expectFate(fate, isSpoilt || sharesKeys(options.queues));
          if (resolved && options.queues) {
            expect(Object.keys(resolved.queues)).toEqual(Object.keys(options.queues));
            expect(Object.getPrototypeOf(resolved.queues)).toBe(null);
          }
          return fate;
        },
      }),
    FUZZ_MS,
  );

  it(
    'are taken as they are or refused',
    () =>
      fuzz('options of handlers', mixture(HANDLER), {
        check: (input) => {
          const { options, isSpoilt } = input;
          const module = resolveModuleOptions({}, 'default');
          const fate = fateNow(() =>
            resolveHandlerSettings({ queue: 'mail', handlerOptions: options, module, source: 'Mails.send' }),
          );
          if (options === null) return expectFate(fate, false);
          const size = isSpoilt ? 1 : (options.batch?.size ?? 1);
          const concurrency = isSpoilt ? 1 : (options.concurrency ?? module.defaults.concurrency);
          return expectFate(fate, isSpoilt || size * concurrency > 10_000);
        },
      }),
    FUZZ_MS,
  );

  const definitions = fc.record({
    name: fc.oneof({ weight: 5, arbitrary: plainName }, anyName),
    given: mixture(DEFINITION),
  });
  it(
    'are taken as they are or refused',
    () =>
      fuzz('definitions', definitions, {
        check: ({ name, given }) => {
          const { options, isSpoilt } = given;
          const fate = fateNow(() => defineQueue(name, options));
          const { debounce, throttle, id, onDead } = isSpoilt ? ({} as any) : options;
          const contradicts =
            both(given, 'debounce', 'throttle') ||
            (debounce !== undefined && onDead === 'keep') ||
            ((debounce ?? throttle) !== undefined && id === undefined);
          return expectFate(fate, !isName(name, 128, { ends: true }) || isSpoilt || contradicts);
        },
      }),
    FUZZ_MS,
  );

  const MAIL = defineQueue('mail');
  const oddNames = nothingUseful.filter(
    (name) => typeof name !== 'string' || name === '' || !isName(name, 64, { ends: true }),
  );
  const calls = fc.oneof(
    fc.record({
      call: fc.constant('forRoot'),
      given: goodOptions(MODULE),
      name: plainName.filter((name) => isName(name, 64, { ends: true })),
      isWrong: fc.constant(false),
    }),
    fc.record({ call: fc.constant('forRoot'), given: fc.constant({}), name: oddNames, isWrong: fc.constant(true) }),
    fc.record({
      call: fc.constant('forRoot, not at all'),
      given: fc.oneof(
        fc.constantFrom<unknown>(null, 5, 'redis://a', true, [], new Map(), new Date(), Symbol('options'), 5n),
        hostile,
      ),
      isWrong: fc.constant(true),
    }),
    fc.record({
      call: fc.constant('forFeature'),
      given: fc.constant([MAIL]),
      name: fc.option(plainName, { nil: undefined }),
      isWrong: fc.constant(false),
    }),
    fc.record({
      call: fc.constant('forFeature'),
      given: fc.constant([MAIL]),
      name: nothingUseful.filter((name) => typeof name !== 'string' || name === ''),
      isWrong: fc.constant(true),
    }),
    fc.record({
      call: fc.constant('forFeature'),
      given: fc.oneof(
        nothingUseful.filter((given) => !(Array.isArray(given) && given.length === 0)),
        fc.constantFrom<unknown>(['mail'], [{ name: 'mail' }], [MAIL, null], MAIL),
      ),
      isWrong: fc.constant(true),
    }),
    fc.record({
      call: fc.constant('OnDelayed'),
      given: fc.oneof(badOptions(HANDLER), goodOptions(HANDLER)),
      name: anyName,
      isWrong: fc.constant(false),
    }),
  );
  it(
    'are made, or refused where they are written',
    () =>
      fuzz('modules and decorators', calls as fc.Arbitrary<any>, {
        check: ({
          call,
          given: boxed,
          name: boxedName,
          isWrong,
        }: {
          call: string;
          given: any;
          name?: any;
          isWrong: boolean;
        }) => {
          const [given, name] = [unboxed(boxed), unboxed(boxedName)];
          const fate = fateNow(() => {
            if (call === 'forRoot') return DelayQueueModule.forRoot({ ...given, name });
            if (call === 'forRoot, not at all') return DelayQueueModule.forRoot(given);
            if (call === 'forFeature') return DelayQueueModule.forFeature(given, name);
            // Checked at boot, where class and method are known.
            class Mails {
              send(): void {}
            }
            return OnDelayed(name, given)(
              Mails.prototype,
              'send',
              Object.getOwnPropertyDescriptor(Mails.prototype, 'send')!,
            );
          });
          return expectFate(fate, isWrong);
        },
      }),
    FUZZ_MS,
  );
});
