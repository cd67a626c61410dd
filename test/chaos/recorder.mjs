// Listens in on the library for what the public API does not tell: claims with their tokens, settles and renewals, each
// with its answer.
//
// It wraps four methods of the built package, so that the library needs no hooks of its own. All that knows about them is
// in this file; a channel of events in the library could take their place.

/** The build with a file for each module: what is published has few, in which these classes cannot be reached. */
export const LIBRARY = new URL('../../dist-modules/esm/index.js', import.meta.url).href;

/** @returns {Promise<(id: string) => number>} the token under which a job runs that is just being started here */
export async function listenIn({ write }) {
  const load = (file) => import(new URL(file, LIBRARY).href);
  const [{ ShardStore }, { Executor }, { Session }] = await Promise.all(
    ['./redis/shard-store.js', './worker/executor.js', './redis/session.js'].map(load),
  );
  const tokens = new Map();
  const sessions = new WeakSet();
  let steps = 0;

  wrap(Session.prototype, 'call', function (call, args) {
    if (!sessions.has(this)) {
      sessions.add(this);
      write({ ev: 'session', key: this.key });
    }
    return call(...args);
  });

  wrap(ShardStore.prototype, 'step', async function (call, args) {
    const { settle, renewals } = args[2];
    const step = ++steps;
    // The numbers as they leave: an extend() that is answered meanwhile changes what the runs say.
    const jobs = settle.ended.map(({ id, claim, settlement }) => [
      id,
      claim.number,
      settlement.verb,
      valueOf(settlement),
    ]);
    const tokensRenewed = renewals.map(({ claim }) => claim.number);
    if (jobs.length > 0) write({ ev: 'settleSent', step, jobs });
    const sent = Date.now();
    const reply = await call(...args);
    if (jobs.length > 0) write({ ev: 'settleAnswer', step, lost: reply.lost });
    if (tokensRenewed.length > 0) {
      const left = [...reply.left].map(([token, ids]) => [token, [...ids]]);
      write({ ev: 'renewed', sent, tokens: tokensRenewed, left });
    }
    if (reply.jobs.length > 0) {
      const claimed = reply.jobs.map(({ id, dueAt, attempts }) => [id, dueAt, attempts.losses]);
      // An answer that was lost comes once more, with a later `now`; the token bears the time of the claim.
      const now = Math.min(reply.now, Math.floor(reply.claim / 1024));
      write({ ev: 'claimed', token: reply.claim, now, jobs: claimed });
    }
    return reply;
  });

  wrap(ShardStore.prototype, 'extend', async function (call, args) {
    const [, from, id, leaseMs] = args;
    const sent = Date.now();
    const to = await call(...args);
    if (to > 0) write({ ev: 'extended', id, from, to, sent, leaseMs });
    return to;
  });

  wrap(Executor.prototype, 'start', function (call, args) {
    const [{ id }, claim] = args;
    tokens.set(id, claim.number);
    const instead = call(...args);
    if (instead) tokens.delete(id); // it may not run
    return instead;
  });

  // A process runs a job once at a time, so its handler is the one to ask.
  return (id) => {
    const token = tokens.get(id);
    tokens.delete(id);
    return token;
  };
}

function wrap(prototype, name, around) {
  const original = prototype[name];
  if (typeof original !== 'function') throw new Error(`the library has no ${name}() to listen in on`);
  prototype[name] = function (...args) {
    return around.call(this, (...given) => original.apply(this, given), args);
  };
}

function valueOf({ delayMs, dueAt }) {
  return delayMs ?? dueAt ?? 0;
}
