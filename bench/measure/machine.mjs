// What else a machine does while something is measured: work of other programs, and time that its host has given to others.
// Known on Linux only; elsewhere nothing is said of it.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Shares of all cores. Above them a figure is marked: it may say more of the machine than of the libraries. */
export const MOST_FOREIGN = 0.05;
export const MOST_STOLEN = 0.02;
const LOOK_MS = 500;
/** Something that was started before may still be ending. */
const PATIENCE_MS = 20_000;

/**
 * Waits until the machine is quiet, runs it, and tells what else the machine did meanwhile. A machine that does not become quiet is told
 * of by the shares.
 *
 * @template T
 * @param {number[]} servers process ids of servers that were there before and work for it
 * @param {() => Promise<T>} work whose processes end with it
 * @returns {Promise<{ result: T, beside: { foreign: number, stolen: number } | undefined }>}
 */
export async function watched(servers, work) {
  const deadline = Date.now() + PATIENCE_MS;
  for (let quiet = false; !quiet && Date.now() < deadline;) {
    const before = sample(servers);
    await sleep(LOOK_MS);
    quiet = !isBusy(shares(before, sample(servers)));
  }
  const before = sample(servers);
  const result = await work();
  return { result, beside: shares(before, sample(servers)) };
}

/** @param {{ foreign: number, stolen: number } | undefined} beside */
export function isBusy(beside) {
  return beside !== undefined && (beside.foreign > MOST_FOREIGN || beside.stolen > MOST_STOLEN);
}

/** Both in ticks: of the machine, and of this process, its children that have ended and the servers. */
function sample(servers) {
  const machine = readText('/proc/stat');
  if (machine === undefined) return undefined;
  const own = [process.pid, ...servers].map((pid) => readText(`/proc/${pid}/stat`) ?? '');
  return { ...machineTicks(machine), own: own.map(processTicks).reduce((sum, ticks) => sum + ticks, 0) };
}

/** @returns shares of all cores; undefined where they are not known */
export function shares(before, after) {
  if (!before || !after || after.all === before.all) return undefined;
  const all = after.all - before.all;
  const foreign = Math.max(0, after.work - before.work - (after.own - before.own));
  return { foreign: foreign / all, stolen: (after.stolen - before.stolen) / all };
}

/** @param {string} text /proc/stat. Interrupts are left out: those of the loopback serve what is measured. */
export function machineTicks(text) {
  const [user, nice, system, idle, wait, irq, softIrq, stolen] = /^cpu +(.*)$/m.exec(text)[1].split(' ').map(Number);
  return { all: user + nice + system + idle + wait + irq + softIrq + stolen, work: user + nice + system, stolen };
}

/** @param {string} text /proc/PID/stat: a name in brackets may have blanks */
export function processTicks(text) {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + (Number(ticks) || 0), 0);
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
