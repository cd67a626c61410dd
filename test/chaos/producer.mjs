// What the producer of a fault run does all the time: by its seed, and so the same again in another run.
import { randomOf } from './random.mjs';

const TICK_MS = 50;
/** Jobs that are old enough to be done or dead, and young enough to be anything else. */
const KNOWN = 400;

/** What handlers are asked to do, with how many of 1,000 jobs do it. */
const BEHAVIOURS = [
  [800, () => ({ does: 'ok' })],
  [30, () => ({ does: 'ok', ms: 1_500 })],
  [10, () => ({ does: 'ok', ms: 3_500 })],
  [20, () => ({ does: 'extend', ms: 300 })],
  [50, (random) => ({ does: 'fail', times: random.between(1, 3) })],
  [10, () => ({ does: 'fail', times: 99, options: { attempts: 2 } })],
  [10, () => ({ does: 'discard' })],
  [40, (random) => ({ does: 'snooze', times: random.between(1, 2) })],
  [30, () => ({ does: 'hang', times: 1, options: { timeout: 500 } })],
];

/** What is done to jobs that were made before, per 1,000 calls. */
const CALLS = { replace: 50, again: 20, reschedule: 40, cancel: 20, cancelRunning: 20 };

/** A job has one group for ever, or none, and some are urgent. */
function placeOf(id) {
  const n = Number(id.split('-')[1]);
  return { ...(n % 10 > 0 && { group: `g${n % 12}` }), ...(n % 7 === 0 && { priority: n % 10 }) };
}

/** @returns {() => Promise<void>} stops it; resolves when all calls were answered */
export function produce(producer, { write }, { name, seed, queue, rate, limits }) {
  const random = randomOf(seed);
  /** Ids whose last call was answered: one call about a job at a time, so that their order is known. */
  let known = [];
  let made = 0;
  let calls = 0;
  let owed = 0;
  const open = new Set();
  const timer = setInterval(() => {
    owed += (rate * TICK_MS) / 1_000;
    for (; owed >= 1; owed--) track(next());
  }, TICK_MS);

  function track(call) {
    open.add(call);
    void call.finally(() => open.delete(call));
  }

  function next() {
    let at = random.below(1_000);
    for (const [what, share] of Object.entries(CALLS)) {
      if (at < share && known.length > 20) return change(what, takeKnown());
      at -= share;
    }
    return enqueue(`${name}-${made++}`, 1, {});
  }

  function takeKnown() {
    const [job] = known.splice(random.below(known.length), 1);
    return job;
  }

  function remember(id, version) {
    known.push({ id, version });
    if (known.length > KNOWN) known = known.slice(-KNOWN);
  }

  function change(what, { id, version }) {
    if (what === 'replace') return enqueue(id, version + 1, { onDuplicate: 'replace' });
    if (what === 'again') return enqueue(id, version + 1, {});
    if (what === 'reschedule') {
      const delay = random.between(0, 2_000);
      return ask(
        { what: 'reschedule', id, due: Date.now() + delay },
        () => producer.reschedule(queue, id, { delay }),
        () => remember(id, version),
      );
    }
    const running = what === 'cancelRunning';
    return ask(
      { what: 'cancel', id },
      () => producer.cancel(queue, id, { running }),
      () => remember(id, version),
      (outcome) => (running && outcome === 'running' ? 'ending' : outcome),
    );
  }

  async function enqueue(id, version, options) {
    const { options: own, ...work } = behaviour();
    const payload = { version: `${id}/${version}`, ms: random.below(60), ...work };
    const delay = random.next() < 0.2 ? 0 : random.between(0, 3_000);
    const placed = limits ? placeOf(id) : {};
    const once = () =>
      ask(
        { what: 'enqueue', id, version: payload.version, due: Date.now() + delay, group: placed.group },
        () => producer.enqueue(queue, payload, { id, delay, ...own, ...options, ...placed }),
        () => remember(id, version),
      );
    const again = (await once()) === 'maybe' && random.next() < 0.5;
    if (again) await once(); // what the error says: repeating it with its id is safe
  }

  function behaviour() {
    let at = random.below(1_000);
    for (const [share, make] of BEHAVIOURS) {
      if (at < share) return make(random);
      at -= share;
    }
    return { does: 'ok' };
  }

  async function ask(question, call, answered, outcomeOf = (outcome) => outcome) {
    const op = ++calls;
    write({ ev: 'asked', op, ...question });
    try {
      const { outcome, state } = await call();
      write({ ev: 'answered', op, outcome: outcomeOf(outcome), state });
      answered();
      return outcome;
    } catch (error) {
      const maybe = error.maybeAccepted === true || !error.code;
      write({ ev: 'failed', op, code: error.code ?? String(error), maybe });
      // Nothing happened, so the job stands as before; a first version was never made.
      if (!maybe && !question.version?.endsWith('/1')) answered();
      return maybe ? 'maybe' : 'refused';
    }
  }

  return async () => {
    clearInterval(timer);
    while (open.size > 0) await Promise.all(open);
  };
}
