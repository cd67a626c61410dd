// Runs the libraries of a scenario in turns (ours, BullMQ, bee-queue, ours, ...), so that whatever happens to the machine
// meanwhile happens to all, and takes medians.
import { mkdirSync } from 'node:fs';
import { freemem } from 'node:os';
import { run } from '../processes.mjs';
import { isBusy, watched } from './machine.mjs';
import { ascending, median } from './numbers.mjs';

/**
 * @param {object} scenario of plan/
 * @param {{ url: string, servers: number[], libraries?: string[], profileDirectory?: string, say: (text: string) => void }} how
 *   `servers`: process ids of the Redis that is measured, if it runs here
 * @returns rows as they stand in latest.json, and what went wrong
 */
export async function measure(scenario, { url, servers, libraries, profileDirectory, say }) {
  const taken = new Map();
  const notes = new Map();
  const failures = [];
  let busiest;
  const wanted = columnsOf(scenario).filter(({ library }) => !libraries || libraries.includes(library));
  for (let turn = 1; turn <= scenario.runs; turn++) {
    for (const { column, library, server } of wanted) {
      if (notes.has(column) || (library !== 'ours' && turn > scenario.peerRuns)) continue;
      if (scenario.needsMemory > freemem()) {
        notes.set(column, `skipped: needs ${scenario.needsMemory / 1e9} GB of free memory`);
        continue;
      }
      say(`${scenario.name}: ${column}, run ${turn} of ${library === 'ours' ? scenario.runs : scenario.peerRuns}`);
      try {
        const { result: figures, beside } = await watched(servers, () =>
          run(
            './scenario.mjs',
            { ...argsOf(scenario, library, url), server },
            {
              timeoutMs: scenario.timeoutMs,
              execArgv: library === 'ours' && profileDirectory ? profiling(profileDirectory, scenario, turn) : [],
            },
          ),
        );
        if (isBusy(beside)) {
          say(`${scenario.name}: the machine was busy with something else: ${percent(beside)}`);
          busiest =
            beside.foreign + beside.stolen > (busiest ? busiest.foreign + busiest.stolen : 0) ? beside : busiest;
        }
        if (figures.skipped) notes.set(column, `skipped: ${figures.skipped}`);
        else taken.set(column, [...(taken.get(column) ?? []), figures]);
      } catch (error) {
        // The other columns still count; this one gets no figure, and the command fails in the end.
        notes.set(column, 'failed');
        taken.delete(column);
        failures.push(`${scenario.name}, ${column}: ${error.message}`);
        say(failures.at(-1));
      }
    }
  }
  const busy = busiest && percent(busiest);
  return { rows: scenario.rows.map((row) => ({ ...rowOf(row, scenario, taken, notes), busy })), failures };
}

/** A column for each library, or ours on each server. */
function columnsOf({ libraries, servers }) {
  if (!servers) return libraries.map((library) => ({ column: library, library }));
  return servers.map((server) => ({ column: server, library: 'ours', server }));
}

/** @returns what a marked row says: the worst of its runs */
function percent({ foreign, stolen }) {
  const of = (share) => `${(100 * share).toFixed(0)} %`;
  return `other programs ${of(foreign)}, stolen ${of(stolen)}`;
}

function argsOf({ file, args, argsOfPeers }, library, url) {
  return { ...(library === 'ours' ? args : (argsOfPeers ?? args)), name: file, library, url };
}

function profiling(directory, { file, args }, turn) {
  mkdirSync(directory, { recursive: true });
  const parts = Object.entries(args).flatMap(([name, value]) => (value === true ? [name] : value));
  const name = [file, ...parts.filter((part) => typeof part !== 'object'), `run${turn}`].join('-');
  return ['--cpu-prof', `--cpu-prof-dir=${directory}`, `--cpu-prof-name=${name}.cpuprofile`];
}

function rowOf({ name, unit, pick, goal, chart, label }, { runs, args }, taken, notes) {
  const row = {
    name,
    unit,
    ours: null,
    bullmq: null,
    beeQueue: null,
    bare: null,
    goal,
    chart,
    label,
    args,
    runs,
    spread: {},
  };
  for (const [column, figures] of taken) {
    const values = figures.map(pick).filter((value) => Number.isFinite(value));
    if (values.length === 0) continue;
    const sorted = ascending(values);
    row[column] = median(values);
    row.spread[column] = [sorted[0], sorted.at(-1)];
  }
  if (notes.size > 0) row.notes = Object.fromEntries(notes);
  return row;
}
