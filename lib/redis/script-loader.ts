import type { Redis } from 'ioredis';
import {
  commandName,
  isPlain,
  keyCount,
  knowsSchedules,
  LIMITED_KEYS_PER_CALL,
  LIMITED_SCRIPT_NAMES,
  limitedSource,
  SCRIPT_NAMES,
  scriptSource,
} from '../lua/scripts.js';
import type { AnyScriptName, ScriptName } from '../lua/scripts.js';
import { limitKeys, scheduleKeys } from './keys.js';
import { MemoryClient } from './memory.client.js';
import type { RedisClient } from './redis.client.js';
import { wantsOtherBuild } from './redis.errors.js';

/** A shard that is forgotten costs a round trip when it is called again, so it is more than a process uses in turns. */
const MOST_LIMITED = 10_000;

type Call = (...args: (string | number)[]) => Promise<unknown>;

/** What these ask is answered by every queue, so their answers do not tell whether it has groups, priorities or limits. */
const ASKED_OF_ANY: ReadonlySet<AnyScriptName> = new Set<AnyScriptName>(['groups', 'limit', 'listGroup']);

/** A shard of a queue with groups, priorities or limits. */
interface LimitedShard {
  /** The keys that it has besides. */
  readonly more: readonly string[];
  /** The number of the call that has told so last. */
  readonly toldBy: number;
}

/**
 * The scripts as commands of a client. They are defined with the first call, because their texts depend on the server.
 * Nothing is loaded on the server: ioredis sends EVALSHA and falls back to EVAL.
 */
export class ScriptLoader {
  #scripts: Map<ScriptName, Call> | undefined;
  #limitedScripts = new Map<AnyScriptName, Call>();
  /** Those that are known, by the key of their due jobs. */
  readonly #limited = new Map<string, LimitedShard>();
  /** How many calls were sent. */
  #sent = 0;
  #loading: Promise<void> | undefined;

  constructor(
    private readonly client: RedisClient,
    /** Sends a command under the deadline of the connection, which replaces the node of `key` when no answer comes. */
    private readonly send: <T>(call: () => Promise<T>, key: string | undefined) => Promise<T>,
  ) {}

  get isLoaded(): boolean {
    return this.#scripts !== undefined;
  }

  /** Whether the shard with this key of due jobs was last found to be one with groups, priorities or limits. */
  isLimited(due: string): boolean {
    return this.#limited.has(due);
  }

  /**
   * Only after `load()`. Each shard is for one of the two builds of the scripts, and refuses the other one before anything is
   * changed: then it is called again. So a queue that uses no limits costs nothing more, and another one a round trip once.
   *
   * A refusal says what the shard is, so the repeat goes by it and not by what is known of the shard: that may come from an answer
   * to another call, of before. A call is repeated as often as it is refused, because each refusal tells of a change since the last one.
   */
  async call(script: AnyScriptName, keys: readonly string[], session: string, args: (string | number)[]) {
    const due = keys[0]!;
    let isLimited = !isPlain(script) || this.#limited.has(due);
    for (;;) {
      const number = ++this.#sent;
      try {
        if (!isLimited) return await this.#callPlain(script as ScriptName, keys, session, args);
        const answer = await this.#callLimited(script, keys, session, args);
        if (!ASKED_OF_ANY.has(script)) this.#isLimited(keys, number);
        return answer;
      } catch (error) {
        if (!isPlain(script) || !wantsOtherBuild(error, isLimited)) throw error;
        if (isLimited) this.#hasNoLimits(due, number);
        else this.#isLimited(keys, number);
        isLimited = !isLimited;
      }
    }
  }

  /** @param number of the call that tells so */
  #isLimited(keys: readonly string[], number: number): void {
    const due = keys[0]!;
    const known = this.#limited.get(due);
    // Anew, so that the one that was called longest ago is the first.
    this.#limited.delete(due);
    this.#limited.set(due, { more: known?.more ?? moreKeys(keys), toldBy: Math.max(number, known?.toldBy ?? 0) });
    if (this.#limited.size > MOST_LIMITED) this.#limited.delete(this.#limited.keys().next().value!);
  }

  /** Unless a call that was sent later has told otherwise: on a Cluster, or where a script was missing, answers may come in another order. */
  #hasNoLimits(due: string, number: number): void {
    const known = this.#limited.get(due);
    if (known && known.toldBy < number) this.#limited.delete(due);
  }

  #callPlain(
    script: ScriptName,
    keys: readonly string[],
    session: string,
    args: (string | number)[],
  ): Promise<unknown> {
    const call = this.#scripts!.get(script)!;
    return knowsSchedules(script)
      ? call(...keys, session, ...scheduleKeys(keys), ...args)
      : call(...keys, session, ...args);
  }

  #callLimited(script: AnyScriptName, keys: readonly string[], session: string, args: (string | number)[]) {
    const more = this.#limited.get(keys[0]!)?.more ?? moreKeys(keys);
    return this.#limitedScripts.get(script)!(...keys, session, ...more, ...args);
  }

  /**
   * Asks the server which texts it understands, and defines the commands.
   *
   * @param key of the call that needs them: of a Cluster its node is asked, because only a node that is known to have been asked in vain
   *   gets another connection
   */
  async load(key?: string): Promise<void> {
    this.#loading ??= this.#define(key).finally(() => (this.#loading = undefined));
    await this.#loading;
  }

  async #define(key: string | undefined): Promise<void> {
    const keys = key === undefined ? [] : [key];
    const flags = await this.send(() => this.#knowsFlags(keys), key);
    if (!((this.client as unknown) instanceof MemoryClient)) await this.#tryEvalsha(keys);
    const client = this.client as unknown as Record<string, Call>;
    const scripts = new Map<ScriptName, Call>();
    for (const name of SCRIPT_NAMES) {
      const command = commandName(name);
      this.client.defineCommand(command, { numberOfKeys: keyCount(name), lua: scriptSource(name, flags) });
      scripts.set(name, (...args) => client[command]!(...args));
    }
    for (const name of LIMITED_SCRIPT_NAMES) {
      const command = commandName(name, true);
      this.client.defineCommand(command, { numberOfKeys: LIMITED_KEYS_PER_CALL, lua: limitedSource(name, flags) });
      this.#limitedScripts.set(name, (...args) => client[command]!(...args));
    }
    this.#scripts = scripts;
  }

  async #knowsFlags(keys: readonly string[]): Promise<boolean> {
    try {
      await (this.client as Redis).eval('#!lua flags=no-writes\nreturn 1', keys.length, ...keys);
      return true;
    } catch (error) {
      if (/compil/i.test((error as Error).message)) return false;
      throw error;
    }
  }

  /** The driver falls back to EVAL when a script is missing, but not when EVALSHA is missing or not permitted. */
  async #tryEvalsha(keys: readonly string[]): Promise<void> {
    try {
      await this.send(() => (this.client as Redis).evalsha('0'.repeat(40), keys.length, ...keys), keys[0]);
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
    }
  }
}

function moreKeys(keys: readonly string[]): readonly string[] {
  return [...scheduleKeys(keys), ...limitKeys(keys[0]!)];
}
