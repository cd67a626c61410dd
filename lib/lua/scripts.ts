import { KEY_COUNT, SCHEDULE_KEY_COUNT, SOURCES } from './scripts.generated.js';

export type ScriptName = keyof typeof SOURCES;

/** Changes with every change of a script's arguments, so that two versions of the library on one client never share a name. */
const VERSION = 4;

export function commandName(script: ScriptName): string {
  return `dq${VERSION}${script[0]!.toUpperCase()}${script.slice(1)}`;
}

// A full server must refuse new jobs and larger payloads, and nothing else: claiming and settling are what makes room.
const REFUSED_WHEN_FULL: ReadonlySet<ScriptName> = new Set<ScriptName>([
  'enqueue',
  'moveIn',
  'rezone',
  'schedulesIn',
  'signal',
  'tick',
  'update',
  'zone',
]);
const READS_ONLY: ReadonlySet<ScriptName> = new Set<ScriptName>([
  'get',
  'list',
  'counts',
  'timeline',
  'select',
  'moveOut',
  'schedules',
  'schedulesOut',
]);

export function readsOnly(script: ScriptName): boolean {
  return READS_ONLY.has(script);
}

/**
 * The text of a script for one kind of server. Since 7.0 flags behind a shebang say what a full server permits; before, a
 * script may go on once it has issued any write, even one that removes nothing.
 */
export function scriptSource(script: ScriptName, serverKnowsFlags: boolean): string {
  const body = SOURCES[script];
  if (serverKnowsFlags) {
    const flags = READS_ONLY.has(script) ? ' flags=no-writes' : REFUSED_WHEN_FULL.has(script) ? '' : ' flags=allow-oom';
    return `#!lua${flags}\n${body}`;
  }
  return READS_ONLY.has(script) || REFUSED_WHEN_FULL.has(script) ? body : `redis.call('ZREM', KEYS[1], '')\n${body}`;
}

export const SCRIPT_NAMES = Object.keys(SOURCES) as ScriptName[];

const KNOWS_SCHEDULES: ReadonlySet<ScriptName> = new Set(
  SCRIPT_NAMES.filter((name) => SOURCES[name].includes(`KEYS[${KEY_COUNT + SCHEDULE_KEY_COUNT}]`)),
);

/** Does the script get the keys of recurring jobs, behind the shard's fixed list? */
export function knowsSchedules(script: ScriptName): boolean {
  return KNOWS_SCHEDULES.has(script);
}

/** Keys per call. */
export function keyCount(script: ScriptName): number {
  return KEY_COUNT + (knowsSchedules(script) ? SCHEDULE_KEY_COUNT : 0);
}
