import type { InstanceContext } from '../instance/instance-context.js';
import { decodeNews, fleetKey } from '../redis/fleet.protocol.js';
import type { FleetNews } from '../redis/fleet.protocol.js';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';

/** What a process of the fleet told of a job: data as of the event with the same name; `error` is one line of text. */
export type FleetEvent = FleetNews & {
  /** Of `forRoot({ name })`. */
  readonly instance: string;
  readonly queue: string;
  /** Name of the process that told it, as in the list of processes. */
  readonly process: string;
  /** When Redis got it. */
  readonly at: Date;
  /** Of the entry: a listener that gives it as `since` goes on behind it. */
  readonly position: string;
};

/** Entries in one answer. */
const PAGE = 100;
const LOOK_EVERY_MS = 500;
const AFTER_A_FAILURE_MS = 2_000;

type Entry = [position: string, fields: string[]];

/**
 * Follows the events that the processes of a fleet keep of one queue. It asks for new ones twice a second: a blocking read would
 * need a connection of its own.
 */
export class FleetReader {
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(
    private readonly context: InstanceContext,
    private readonly queue: string,
    private readonly tell: (event: FleetEvent) => void,
  ) {
    this.#key = fleetKey(context.options.prefix, queue);
  }

  /** @param since a position, or undefined for what comes from now on */
  start(since: string | undefined): void {
    void this.#look(since);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #look(since: string | undefined): Promise<void> {
    let last = since;
    let wait = 0;
    try {
      last ??= await this.#latest();
      const entries = await this.#after(last);
      for (const [position, fields] of entries) {
        if (this.#stopped) return;
        this.#entry(position, fields);
        last = position;
      }
      if (entries.length < PAGE) wait = LOOK_EVERY_MS;
    } catch {
      // Redis is away, which the log says elsewhere, or this listener has no say. It goes on where it was.
      wait = AFTER_A_FAILURE_MS;
    }
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#look(last), wait).unref();
  }

  #entry(position: string, fields: readonly string[]): void {
    const field = (name: string) => fields[fields.indexOf(name) + 1] ?? '';
    const about = {
      instance: this.context.options.name,
      queue: this.queue,
      process: field('p'),
      at: new Date(Number(position.split('-')[0])),
      position,
    };
    for (const news of decodeNews(field('e'))) {
      if (this.#stopped) return;
      this.tell({ ...news, ...about });
    }
  }

  /** The position of the newest entry. */
  async #latest(): Promise<string> {
    const { connection } = this.context;
    await connection.whenReady();
    const { commands } = connection;
    const newest = await connection.send(() => commands.xrevrange(this.#key, '+', '-', 'COUNT', 1), this.#key);
    return newest[0]?.[0] ?? '0-0';
  }

  async #after(position: string): Promise<Entry[]> {
    const { connection } = this.context;
    await connection.whenReady();
    const { commands } = connection;
    return connection.send(() => commands.xrange(this.#key, `(${position}`, '+', 'COUNT', PAGE), this.#key);
  }
}
