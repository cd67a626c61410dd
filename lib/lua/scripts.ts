import { KEY_COUNT, SCHEDULE_KEY_COUNT, SOURCES } from './scripts.generated.js';
import { LIMITED_KEY_COUNT, LIMITED_SOURCES } from './scripts.limited.generated.js';

export type ScriptName = keyof typeof SOURCES;
/** What only the build with limits has under another name: what has a group or a priority makes a queue one of this build. */
const ALIASES = { place: 'enqueue', placeOccurrences: 'tick' } as const;
/** What only queues with groups, priorities or limits know. */
export type LimitScriptName = Exclude<keyof typeof LIMITED_SOURCES, ScriptName> | keyof typeof ALIASES;
export type AnyScriptName = ScriptName | LimitScriptName;

/** Changes with every change of a script's arguments, so that two versions of the library on one client never share a name. */
const VERSION = 6;

/** `limited` names the build for queues that use groups, priorities or limits. */
export function commandName(script: AnyScriptName, limited = false): string {
  return `dq${VERSION}${limited ? 'l' : ''}${script[0]!.toUpperCase()}${script.slice(1)}`;
}

// A full server must refuse new jobs and larger payloads, and nothing else: claiming and settling are what makes room.
const REFUSED_WHEN_FULL: ReadonlySet<AnyScriptName> = new Set<AnyScriptName>([
  'enqueue',
  'place',
  'moveIn',
  'rezone',
  'schedulesIn',
  'signal',
  'tick',
  'placeOccurrences',
  'update',
  'zone',
]);
const READS_ONLY: ReadonlySet<AnyScriptName> = new Set<AnyScriptName>([
  'get',
  'list',
  'counts',
  'timeline',
  'select',
  'moveOut',
  'schedules',
  'schedulesOut',
  'groups',
  'listGroup',
  'waitingOccurrences',
]);

export function readsOnly(script: AnyScriptName): boolean {
  return READS_ONLY.has(script);
}

/**
 * The text of a script for one kind of server. Since 7.0 flags behind a shebang say what a full server permits; before, a
 * script may go on once it has issued any write, even one that removes nothing.
 */
export function scriptSource(script: ScriptName, serverKnowsFlags: boolean): string {
  return flagged(script, SOURCES[script], serverKnowsFlags);
}

/** The same of the build for queues with groups, priorities or limits. */
export function limitedSource(script: AnyScriptName, serverKnowsFlags: boolean): string {
  return flagged(
    script,
    LIMITED_SOURCES[
      script in ALIASES ? ALIASES[script as keyof typeof ALIASES] : (script as keyof typeof LIMITED_SOURCES)
    ],
    serverKnowsFlags,
  );
}

function flagged(script: AnyScriptName, body: string, serverKnowsFlags: boolean): string {
  if (serverKnowsFlags) {
    const flags = READS_ONLY.has(script) ? ' flags=no-writes' : REFUSED_WHEN_FULL.has(script) ? '' : ' flags=allow-oom';
    return `#!lua${flags}\n${body}`;
  }
  return READS_ONLY.has(script) || REFUSED_WHEN_FULL.has(script) ? body : `redis.call('ZREM', KEYS[1], '')\n${body}`;
}

export const SCRIPT_NAMES = Object.keys(SOURCES) as ScriptName[];

/** Is it in both builds? */
export function isPlain(script: AnyScriptName): script is ScriptName {
  return script in SOURCES;
}

export const LIMITED_SCRIPT_NAMES: readonly AnyScriptName[] = [
  ...(Object.keys(LIMITED_SOURCES) as (keyof typeof LIMITED_SOURCES)[]),
  ...(Object.keys(ALIASES) as (keyof typeof ALIASES)[]),
];

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

/** Keys per call of the build for queues with groups, priorities or limits: all that there are. */
export const LIMITED_KEYS_PER_CALL = LIMITED_KEY_COUNT;
