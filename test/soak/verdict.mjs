// Is a run flat? A line is fitted through the samples of the last two thirds: the first third is warming up, when code is
// compiled, caches fill and dead letters reach their cap. What it rises over that time must stay below a bound.

/** What is looked at, in which unit, and by how much it may rise: a part of its mean, or so many units if that is more. */
export const BOUNDS = {
  heap: { unit: 'MiB', part: 0.02, least: 0.4, what: 'heap after garbage collection' },
  external: { unit: 'MiB', part: 0.02, least: 0.4, what: 'memory outside the heap' },
  rss: { unit: 'MiB', part: 0.05, least: 0, what: 'resident memory of the process' },
  handles: { unit: '', part: 0, least: 0.5, what: 'sockets, servers, files' },
  timers: { unit: '', part: 0, least: 10, what: 'timers' },
  // The buffers of its clients are part of it, and swing by as much.
  redis: { unit: 'MiB', part: 0.02, least: 0.15, what: 'used_memory of Redis' },
  // Those of what is empty come and go.
  keys: { unit: '', part: 0, least: 5, what: 'keys in Redis' },
  connections: { unit: '', part: 0, least: 0.5, what: 'connections at Redis' },
};

/** @param {{ seconds: number }[]} samples with a number for each of BOUNDS */
export function verdictOf(samples) {
  const last = samples.slice(Math.ceil(samples.length / 3));
  const rows = Object.entries(BOUNDS).map(([name, { unit, part, least, what }]) => {
    const values = last.map((sample) => sample[name]);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const rise =
      slope(
        last.map(({ seconds }) => seconds),
        values,
      ) *
      (last.at(-1).seconds - last[0].seconds);
    const bound = Math.max(part * mean, least);
    const [min, max] = [Math.min(...values), Math.max(...values)];
    return {
      name,
      what,
      unit,
      first: samples[0][name],
      min,
      max,
      last: values.at(-1),
      rise,
      bound,
      isFlat: rise <= bound,
    };
  });
  return { rows, isFlat: rows.every(({ isFlat }) => isFlat) };
}

/** By least squares. */
function slope(xs, ys) {
  const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;
  const [x, y] = [mean(xs), mean(ys)];
  const spread = xs.reduce((sum, one) => sum + (one - x) ** 2, 0);
  return spread === 0 ? 0 : xs.reduce((sum, one, n) => sum + (one - x) * (ys[n] - y), 0) / spread;
}

/** As Markdown. */
export function tableOf({ rows }) {
  const number = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(2));
  const lines = rows.map(({ what, unit, first, min, max, last, rise, bound, isFlat }) => {
    const name = unit === '' ? what : `${what}, ${unit}`;
    return `| ${[name, ...[first, min, max, last, rise, bound].map(number), isFlat ? 'yes' : 'NO'].join(' | ')} |`;
  });
  return [
    '| | at first | least | most | at last | rise | allowed | flat |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}
