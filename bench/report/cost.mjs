// What a Redis must be for so many jobs a day, computed from the figures of the last whole run: the table "What it costs" of
// docs/performance.md, between two marks.
const BEGIN = '<!-- cost: begin, written by `node bench/cost.mjs` -->';
const END = '<!-- cost: end -->';

const JOBS_PER_DAY = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const DAY_S = 86_400;
/** Mean delays, in days. */
const DELAYS = { 'an hour': 1 / 24, 'a day': 1, 'a week': 7, 'a month': 30 };
/** As providers sell them, in GB. */
const SIZES = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256];
/** A server that writes a snapshot or rewrites its file may copy what changes meanwhile, and an empty one needs some as well. */
const HEADROOM = 2;
/** Days are uneven: the busiest hour has so many times the jobs of the mean one. */
const PEAK = 10;

/** Of the figures of a run, by the names of their rows. */
const ROWS = {
  enqueue: /^enqueue, 100 callers in flight: CPU of Redis per job$/,
  drain: /^Redis CPU per job in the drain, concurrency 100$/,
  alone: /^Redis CPU per job with 20 processes at 200 jobs\/s$/,
};
const AT_SIZE = /^memory per job at ([\d,]+) pending$/;

/** @param {{ scenarios: { name: string, ours: number | null }[] }} results bench/results/latest.json */
export function costTable({ scenarios }) {
  const figure = (name) => scenarios.find((row) => name.test(row.name))?.ours ?? undefined;
  const inGroups = figure(ROWS.enqueue) + figure(ROWS.drain);
  const alone = figure(ROWS.alone);
  const bytes = bytesBySize(scenarios);
  const head = [
    'jobs per day',
    ...Object.keys(DELAYS).map((delay) => `due after ${delay}`),
    'CPU, mean',
    `CPU, at ${PEAK} times the mean`,
    ...(alone ? ['CPU, mean, 20 processes that wait'] : []),
  ];
  const lines = JOBS_PER_DAY.map((jobs) => [
    jobs.toLocaleString('en'),
    ...Object.values(DELAYS).map((days) => memory(jobs * days, bytes)),
    cores(jobs, inGroups),
    cores(jobs * PEAK, inGroups),
    ...(alone ? [cores(jobs, alone)] : []),
  ]);
  return [head, head.map(() => '---'), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n');
}

/** @returns the page with the table in its place */
export function withCostTable(page, results) {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`The page lacks the marks ${BEGIN} and ${END}.`);
  return `${before}${BEGIN}\n\n${costTable(results)}\n\n${END}${after}`;
}

/** Tables of Redis double in size as they grow, so that a job costs a little more or less at each size. */
function bytesBySize(scenarios) {
  return scenarios.flatMap(({ name, ours }) => {
    const size = AT_SIZE.exec(name)?.[1];
    return size && ours ? [{ size: Number(size.replaceAll(',', '')), bytes: ours }] : [];
  });
}

function memory(pending, bytes) {
  // The most that was measured at this size or below, or at the smallest one.
  const known = bytes.filter(({ size }, n) => n === 0 || size <= pending);
  const used = pending * Math.max(...known.map((each) => each.bytes));
  const size = SIZES.find((gigabytes) => gigabytes * 1e9 >= used * HEADROOM);
  return `${size ? `${size} GB` : 'shards'} (${amount(used)})`;
}

function amount(bytes) {
  if (bytes >= 1e9) return `${rounded(bytes / 1e9)} GB`;
  return bytes >= 1e6 ? `${rounded(bytes / 1e6)} MB` : `${rounded(bytes / 1e3)} KB`;
}

function cores(jobs, microseconds) {
  const share = (jobs * microseconds) / 1e6 / DAY_S;
  return share < 0.001 ? '< 0.1 %' : `${rounded(share * 100)} %`;
}

function rounded(n) {
  return String(Number(n.toPrecision(2)));
}
