import { clearTimeout, setTimeout } from '../time-and-randomness.js';
import { warnOnce } from '../user-code.js';

/** Long enough for an application to import its modules after its handlers. */
const WAIT_MS = 5_000;
const MOST_NAMED = 5;

/** What is needed of one `@OnDelayed`; nothing in it has been checked. */
export interface Decorated {
  readonly queue: string | { readonly name: string };
  readonly options: { readonly instance?: string };
  readonly declaredBy: object;
  readonly decorator: string;
}

/** What is said of a method with `@OnDelayed` whose class is no provider. */
export interface Unprovided {
  /** `ClassName.methodName`. */
  readonly name: string;
  readonly registration: Decorated;
}

interface Noted {
  readonly method: string | symbol;
  readonly registration: Decorated;
}

/**
 * The classes with handlers that the process has loaded, but that no application has as a provider yet. Decorators note them
 * here, because nothing else knows of a class that was forgotten. Held weakly: tests make classes all day.
 */
const unprovided = new Set<WeakRef<object>>();
const references = new WeakMap<object, WeakRef<object>>();
const handlersOf = new WeakMap<object, Noted[]>();
let anyRoot = false;
let watch: NodeJS.Timeout | undefined;

/** Called by the decorator, once for each of them. */
export function noteHandler(method: string | symbol, registration: Decorated): void {
  const prototype = registration.declaredBy;
  let handlers = handlersOf.get(prototype);
  if (!handlers) {
    handlersOf.set(prototype, (handlers = []));
    const reference = new WeakRef(prototype);
    references.set(prototype, reference);
    unprovided.add(reference);
  }
  handlers.push({ method, registration });
  // Tests call handlers without any application.
  if (!anyRoot && process.env['NODE_ENV'] !== 'test') watch ??= watchForRoot();
}

/** An application has a provider that is of this class, or of one that extends it. */
export function noteProvided(prototype: object): void {
  const reference = references.get(prototype);
  if (reference) unprovided.delete(reference);
}

/**
 * Handlers that a class inherits and overrides by a method without the decorator, which ends them; they count as provided, because adding
 * the class that declares them would not help.
 *
 * @param prototype of a provider
 * @param handled its methods that are handlers
 */
export function overriddenHandlers(prototype: object, handled: ReadonlySet<string | symbol>): string[] {
  const found: string[] = [];
  let owner = Reflect.getPrototypeOf(prototype);
  for (; owner && owner !== Object.prototype; owner = Reflect.getPrototypeOf(owner)) {
    for (const { method, registration } of handlersOf.get(owner) ?? []) {
      if (handled.has(method)) continue;
      noteProvided(owner);
      const by = `${prototype.constructor.name}.${String(method)}`;
      found.push(
        `${by} overrides ${owner.constructor.name}.${String(method)} without ${registration.decorator}, so nothing runs these jobs here. ` +
          `Put the decorator on ${by} too.`,
      );
    }
  }
  return found;
}

/** Somebody called `forRoot()`: whether its application boots is told elsewhere. */
export function noteRoot(): void {
  anyRoot = true;
  if (watch) clearTimeout(watch);
}

/** Handlers of classes that nobody provides. */
export function unprovidedHandlers(): Unprovided[] {
  const found: Unprovided[] = [];
  for (const reference of unprovided) {
    const prototype = reference.deref();
    if (!prototype) unprovided.delete(reference);
    else {
      for (const { method, registration } of handlersOf.get(prototype)!) {
        found.push({ name: `${prototype.constructor.name}.${String(method)}`, registration });
      }
    }
  }
  return found;
}

/** A warning of the process: without the module there is nobody else who would log it. */
export function watchForRoot(waitMs = WAIT_MS): NodeJS.Timeout {
  return setTimeout(() => {
    const names = unprovidedHandlers().map(({ name }) => name);
    const list = `${names.slice(0, MOST_NAMED).join(', ')}${names.length > MOST_NAMED ? ', ...' : ''}`;
    warnOnce(
      'without forRoot',
      `Nothing runs the jobs of ${list}: no DelayQueueModule.forRoot() was called in this process. Import it in the root module.`,
    );
  }, waitMs).unref();
}
