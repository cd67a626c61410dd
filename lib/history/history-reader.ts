import { InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { LimitCalls } from '../inspection/limit-calls.js';
import { readTimeline } from '../inspection/timeline.js';
import { parseCounts } from '../redis/counts.protocol.js';
import { parseInstant } from '../job/duration.js';
import type { QueueLimits } from '../job/queue-limits.js';
import { readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { typedError } from '../redis/redis.errors.js';
import { ALIVE_MS, KEPT_MS, MINUTE_MS, minuteKey, processesKey, processKey } from './history.keys.js';
import { latenessOf } from './lateness.js';
import type { Lateness } from './lateness.js';
import { added, KINDS, LATENESS_FIELDS } from './minute-counts.js';
import type { Kind, MinuteCounts } from './minute-counts.js';
import { parseProcess } from './process-record.js';
import type { LiveProcess } from './process-record.js';
import { serverTime } from './server-time.js';

export interface HistoryOptions {
  /** The first minute. Default: an hour before `to`. Minutes older than 24 hours are gone. */
  from?: Date | number;
  /** The last minute. Default: now, by the clock of Redis. */
  to?: Date | number;
}

/** What all processes that keep history did with the jobs of a queue, in a minute or in all that were asked for. */
export interface HistoryCounts extends Record<Kind, number> {
  /** From the due time to the claim; undefined when no job was claimed. */
  lateness: Lateness | undefined;
  /** From the claim to the outcome; undefined when no run ended. */
  meanDurationMs: number | undefined;
}

export interface HistoryMinute extends HistoryCounts {
  /** When it began. */
  at: Date;
}

export interface QueueHistory {
  /** Those in which something happened. The present minute is written when it is over. */
  minutes: HistoryMinute[];
  total: HistoryCounts;
}

/** Of processes, in one answer. */
const MOST_PROCESSES = 1_000;
/** Keys that are read at once. */
const AT_ONCE = 120;
const DEFAULT_LENGTH_MS = 3_600_000;

const RULES: OptionRules<HistoryOptions, { from?: number; to?: number }> = {
  from: (draft, value, field) => {
    draft.from = parseInstant(value, field);
  },
  to: (draft, value, field) => {
    draft.to = parseInstant(value, field);
  },
};

/** Reads what the processes of one instance have written. */
export class HistoryReader {
  constructor(private readonly context: InstanceContext) {}

  async minutes(queue: string, options: HistoryOptions): Promise<QueueHistory> {
    const naming = (option: string) => `minutes("${queue}", { ${option} })`;
    const draft = readOptions(options, RULES, {} as { from?: number; to?: number }, naming);
    if (draft.from !== undefined && draft.to !== undefined && draft.to <= draft.from) {
      throw new InvalidOptionError(`${naming('to')}: is not behind \`from\`.`);
    }
    return this.#reading(`the history of queue "${queue}"`, async () => {
      const now = await serverTime(this.context.connection);
      const to = Math.min(draft.to ?? now, now);
      const from = Math.max(draft.from ?? to - DEFAULT_LENGTH_MS, now - KEPT_MS);
      const found = await this.#counts(queue, from, to);
      return {
        minutes: found.map(([minute, counts]) => ({ at: new Date(minute * MINUTE_MS), ...described(counts) })),
        total: described(added(found.map(([, counts]) => counts))),
      };
    });
  }

  /** Processes that showed themselves within 45 s, by host and age. */
  async processes(): Promise<LiveProcess[]> {
    const { connection, options } = this.context;
    const { commands } = connection;
    return this.#reading('the list of processes', async () => {
      const now = await serverTime(connection);
      const all = processesKey(options.prefix);
      const names = await connection.send(
        () => commands.zrange(all, now - ALIVE_MS, '+inf', 'BYSCORE', 'LIMIT', 0, MOST_PROCESSES),
        all,
      );
      const found = await inParts(names, async (name) => {
        const key = processKey(options.prefix, name);
        return parseProcess(name, await connection.send(() => commands.get(key), key));
      });
      return found
        .filter((process) => process !== undefined)
        .toSorted((a, b) =>
          a.host < b.host ? -1 : a.host > b.host ? 1 : a.startedAt.getTime() - b.startedAt.getTime(),
        );
    });
  }

  /** The minutes of a range that have counts, oldest first. */
  counts(queue: string, from: number, to: number): Promise<[minute: number, counts: MinuteCounts][]> {
    return this.#reading(`the history of queue "${queue}"`, () => this.#counts(queue, from, to));
  }

  async #counts(queue: string, from: number, to: number): Promise<[minute: number, counts: MinuteCounts][]> {
    const { connection, options } = this.context;
    const { commands } = connection;
    const first = Math.floor(from / MINUTE_MS);
    const length = Math.max(0, Math.min(Math.ceil(to / MINUTE_MS) - first, KEPT_MS / MINUTE_MS + 1));
    const minutes = Array.from({ length }, (_, n) => first + n);
    const found = await inParts(minutes, async (minute): Promise<[number, MinuteCounts]> => {
      const key = minuteKey(options.prefix, queue, minute);
      const fields = await connection.send(() => commands.hgetall(key), key);
      return [minute, Object.fromEntries(Object.entries(fields).map(([field, count]) => [field, Number(count) || 0]))];
    });
    return found.filter(([, counts]) => Object.keys(counts).length > 0);
  }

  /** For a forecast: due times and present counts. */
  async present(queue: string) {
    const stores = this.context.stores(queue);
    return this.#reading(`queue "${queue}"`, () =>
      Promise.all(stores.map(async (store) => parseCounts(await store.call('counts', [])))),
    );
  }

  async limits(queue: string): Promise<QueueLimits | undefined> {
    return (await new LimitCalls(this.context, queue).read()).limits;
  }

  timeline(queue: string, from: number, to: number, buckets: number) {
    return readTimeline(this.context, queue, { from, to, buckets });
  }

  async #reading<T>(what: string, read: () => Promise<T>): Promise<T> {
    try {
      await this.context.connection.whenReady();
      return await read();
    } catch (error) {
      throw typedError(error, what);
    }
  }
}

async function inParts<Item, Result>(items: readonly Item[], read: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map((item) => read(item)))));
  }
  return results;
}

function described(counts: MinuteCounts): HistoryCounts {
  const of = (field: string) => counts[field] ?? 0;
  return {
    ...(Object.fromEntries(KINDS.map((kind) => [kind, of(kind)])) as Record<Kind, number>),
    lateness: latenessOf(LATENESS_FIELDS.map(of), of('latenessMs')),
    meanDurationMs: of('ran') > 0 ? of('ranMs') / of('ran') : undefined,
  };
}
