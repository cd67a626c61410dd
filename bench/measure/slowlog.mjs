// The longest script by Redis' own clock, and the pause of the machine that no script is to blame for.
const THRESHOLD_US = 1_000;
const LENGTH = 20_000;
const SCRIPT = /^(EVAL|FCALL)/i;

/** Runs `work` with the slow log recording; the server's own settings are put back. @returns ms, 0 when none took one */
export async function worstScriptMs(redis, work) {
  const names = ['slowlog-log-slower-than', 'slowlog-max-len'];
  const before = [];
  for (const name of names) before.push((await redis.config('GET', name))[1]);
  await redis.config('SET', names[0], THRESHOLD_US);
  await redis.config('SET', names[1], LENGTH);
  await redis.slowlog('RESET');
  try {
    await work();
    const entries = await redis.slowlog('GET', LENGTH);
    return Math.max(0, ...entries.filter(([, , , args]) => SCRIPT.test(args[0])).map(([, , us]) => us)) / 1_000;
  } finally {
    for (const [n, name] of names.entries()) await redis.config('SET', name, before[n]);
  }
}

/** A script of always the same work, about a millisecond, over and over: what its worst takes beyond that is the machine's. */
export async function worstOfSteadyScriptMs(redis, ms) {
  const script = 'local n = 0; for i = 1, ARGV[1] do n = n + i % 7 end; return n';
  const since = performance.now();
  await redis.eval(script, 0, 1_000_000);
  const loops = Math.round(1_000_000 / Math.max(1, performance.now() - since));
  return worstScriptMs(redis, async () => {
    for (const until = performance.now() + ms; performance.now() < until;) await redis.eval(script, 0, loops);
  });
}
