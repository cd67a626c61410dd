import type { Command } from 'commander';
import { parseDuration } from '../../job/duration.js';
import { clearTimeout, setTimeout } from '../../time-and-randomness.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT } from '../exit-codes.js';
import { queueColumns, readQueues } from '../look/queues.js';
import { frameOf, SORTS } from './top-frame.js';
import type { Sort, TopLook } from './top-frame.js';

const OTHER_SCREEN = '\u001b[?1049h\u001b[?25l';
const SCREEN_BEFORE = '\u001b[?25h\u001b[?1049l';
const TO_THE_TOP = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

export function addTop(program: Command): void {
  program
    .command('top')
    .description('all queues, again and again; without a terminal once')
    .option('--every <duration>', 'how often it looks', '2s')
    .action(
      action(async (cli, { every }: { every: string }) => {
        const ms = parseDuration(every, '--every', { min: 100, max: 3_600_000 });
        const session = await cli.connect();
        if (cli.out.isTerminal && process.stdin.isTTY) {
          await new Top(cli, session, ms).untilQuit();
          return EXIT.done;
        }
        const now = await session.now();
        cli.out.table(queueColumns(cli.times, now), await readQueues(session, await session.inspector.queues()));
        return EXIT.done;
      }),
    );
}

/** Redraws the whole screen; nothing is kept of it but the look before, for rates. */
class Top {
  #sort: Sort = SORTS[0];
  #filter = '';
  #typing = false;
  #paused = false;
  #trouble: string | undefined;
  #look: TopLook | undefined;
  #before: TopLook | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The terminal is given back: a look that is still under way draws nothing more. */
  #isOver = false;
  #quit: () => void = () => undefined;

  constructor(
    private readonly cli: Cli,
    private session: Session,
    private readonly everyMs: number,
  ) {}

  async untilQuit(): Promise<void> {
    const { stdin } = process;
    const { stdout } = this.cli.out;
    const leave = () => {
      stdin.setRawMode(false);
      stdout.write(SCREEN_BEFORE);
    };
    this.cli.interruption.beforeExit(leave);
    stdout.write(OTHER_SCREEN);
    stdin
      .setRawMode(true)
      .setEncoding('utf8')
      .on('data', (keys: string) => this.#typed(keys));
    stdout.on('resize', () => this.#draw());
    const quit = new Promise<void>((resolve) => (this.#quit = resolve));
    void this.#refresh();
    await quit;
    this.#isOver = true;
    clearTimeout(this.#timer);
    stdin.pause();
    leave();
  }

  #typed(keys: string): void {
    for (const key of keys) {
      if (key === '\u0003') return this.#quit();
      if (this.#typing) this.#typedFilter(key);
      else if (key === 'q') return this.#quit();
      else if (key === 'p') this.#paused = !this.#paused;
      else if (key === 's') this.#sort = SORTS[(SORTS.indexOf(this.#sort) + 1) % SORTS.length]!;
      else if (key === '/') [this.#typing, this.#filter] = [true, ''];
    }
    this.#draw();
  }

  #typedFilter(key: string): void {
    if (key === '\r' || key === '\n' || key === '\u001b') this.#typing = false;
    else if (key === '\u007f' || key === '\b') this.#filter = this.#filter.slice(0, -1);
    else if (key >= ' ') this.#filter += key;
  }

  async #refresh(): Promise<void> {
    if (!this.#paused) {
      try {
        const look = await lookAt(this.session);
        this.#before = this.#look;
        this.#look = look;
        this.#trouble = undefined;
        await this.#knowShards(look);
      } catch (error) {
        this.#trouble = (error as Error).message;
      }
      this.#draw();
    }
    if (this.#isOver) return;
    this.#timer = setTimeout(() => void this.#refresh(), this.everyMs);
  }

  /** While it runs, queues get another number of shards, and new ones have several. Read with the next frame. */
  async #knowShards({ queues }: TopLook): Promise<void> {
    if (queues.some(({ state }) => state === 'unreadable')) this.session = await this.session.again();
  }

  #draw(): void {
    if (!this.#look || this.#isOver) return;
    const { stdout } = this.cli.out;
    const lines = frameOf(this.#look, this.#before, {
      sort: this.#sort,
      filter: this.#filter,
      typing: this.#typing,
      paused: this.#paused,
      trouble: this.#trouble,
      columns: stdout.columns || 80,
      rows: stdout.rows || 24,
    });
    stdout.write(TO_THE_TOP + lines.join(`${CLEAR_LINE}\r\n`) + CLEAR_LINE + CLEAR_BELOW);
  }
}

async function lookAt(session: Session): Promise<TopLook> {
  const { HistoryReader } = await import('../../history/history-reader.js');
  const names = await session.inspector.queues();
  const [now, rows, processes] = await Promise.all([
    session.now(),
    readQueues(session, names),
    new HistoryReader(session.context).processes(),
  ]);
  const queues = rows.map(async (row) => ({
    ...row,
    totals: row.error === undefined ? await session.inspector.totals(row.queue) : undefined,
  }));
  return { now, queues: await Promise.all(queues), processes };
}
