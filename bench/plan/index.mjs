// Which scenarios run, at which size and how often.
//
// A scenario: name, file in scenarios/, libraries, args, runs (5 unless said), and the rows of the table that come of its
// figures: { name, unit, pick(figures), goal (goals.mjs), chart, label }. `quick` has the args of `--quick`; a scenario without
// it is left out there. `servers`: ours on each of them, a column each, instead of libraries. `peerRuns` and `argsOfPeers`: less for the peers, where they would take hours.
import { BURSTS } from './bursts.mjs';
import { KINDS } from './kinds.mjs';
import { LATENESS } from './lateness.mjs';
import { LIMITS } from './limits.mjs';
import { NETWORK } from './network.mjs';
import { PEERS } from './peers.mjs';
import { BY_SERVER } from './servers.mjs';
import { SIZES } from './sizes.mjs';
import { THROUGHPUT } from './throughput.mjs';
import { WORKERS } from './workers.mjs';

const RUNS = { full: 5, quick: 3 };
/** Of peers in `--quick`: with a third one it would take over four minutes. */
const QUICK_PEER_RUNS = 2;
const SCALED = ['jobs', 'warmUp', 'seconds', 'probe', 'baselineMs', 'sizes'];

export const SCENARIOS = [
  ...THROUGHPUT,
  ...LATENESS,
  ...BURSTS,
  ...SIZES,
  ...LIMITS,
  ...WORKERS,
  ...KINDS,
  ...NETWORK,
  ...BY_SERVER,
  ...PEERS,
];

/** The scenarios of one call of the command, with their args, runs and names settled. */
export function plan({ quick, only, runs, scale = 1 }) {
  return SCENARIOS.filter(({ quick: args }) => !quick || args)
    .filter((scenario) => !only || matches(scenario, only.toLowerCase()))
    .map(({ quick: quickArgs, quickRuns, runs: fullRuns, peerRuns, argsOfPeers, ...scenario }) => {
      const args = scaled(quick ? quickArgs : scenario.args, scale);
      const own = runs ?? (quick ? (quickRuns ?? RUNS.quick) : (fullRuns ?? RUNS.full));
      return {
        ...scenario,
        args,
        argsOfPeers: argsOfPeers && scaled(argsOfPeers, scale),
        rows: scenario.rows.map((row) => ({ ...row, name: nameOf(row, args) })),
        runs: own,
        peerRuns: Math.min(own, peerRuns ?? own, quick ? QUICK_PEER_RUNS : own),
      };
    });
}

function matches({ name, rows, args }, part) {
  return [name, ...rows.map((row) => nameOf(row, args))].some((text) => text.toLowerCase().includes(part));
}

function nameOf({ name }, args) {
  return typeof name === 'function' ? name(args) : name;
}

/** Fewer jobs, for who works on the harness: the figures of such a run mean nothing. */
function scaled(args, scale) {
  if (scale === 1) return args;
  const shrink = (n) => Math.max(1, Math.round(n * scale));
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => {
      if (!SCALED.includes(name)) return [name, value];
      return [name, Array.isArray(value) ? value.map(shrink) : shrink(value)];
    }),
  );
}
