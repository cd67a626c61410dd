import type { Command } from 'commander';
import type { FleetEvent } from '../../events/fleet-reader.js';
import { fleetKey } from '../../redis/fleet.protocol.js';
import { clearInterval, setInterval } from '../../time-and-randomness.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { notFound } from '../exit-codes.js';
import { countOf } from '../terminal/numbers.js';
import { span } from '../terminal/times.js';

interface Flags {
  since?: string;
  limit?: string;
}

/** Longer than any event is: it only keeps the process alive. */
const ALIVE_MS = 60_000;

export function addTail(program: Command): void {
  program
    .command('tail')
    .argument('<queue>')
    .description('how jobs end, in whatever process: of queues that keep events')
    .option('--since <time>', 'also what came from then on')
    .option('--limit <n>', 'end after so many events')
    .action(
      action(async (cli, { since, limit }: Flags, queue: string) => {
        const most = limit === undefined ? Infinity : countOf(limit, '--limit');
        const moment = since === undefined ? undefined : cli.times.moment(since, '--since');
        const session = await cli.connect([queue]);
        await assertKept(session, queue);
        await follow(cli, session, queue, moment?.at(await session.now()), most);
      }),
    );
}

async function assertKept({ context }: Session, queue: string): Promise<void> {
  const { connection, options } = context;
  const key = fleetKey(options.prefix, queue);
  if ((await connection.send(() => connection.commands.xrevrange(key, '+', '-', 'COUNT', 1), key)).length > 0) return;
  throw notFound(
    `Queue "${queue}" keeps no events. The processes that run its jobs need queues: { '${queue}': { events: {} } } in forRoot().`,
  );
}

async function follow(
  cli: Cli,
  { context }: Session,
  queue: string,
  from: number | undefined,
  most: number,
): Promise<void> {
  const { FleetReader } = await import('../../events/fleet-reader.js');
  let count = 0;
  await new Promise<void>((resolve) => {
    const alive = setInterval(() => undefined, ALIVE_MS);
    const reader = new FleetReader(context, queue, (event) => {
      tell(cli, event);
      if (++count < most) return;
      reader.stop();
      clearInterval(alive);
      resolve();
    });
    // Behind the last entry of the millisecond before.
    reader.start(from === undefined ? undefined : `${Math.max(0, from - 1)}-18446744073709551615`);
  });
}

function tell({ out, times }: Cli, event: FleetEvent): void {
  if (out.isJson) return out.json(event);
  const { at, type, id, attempt, latenessMs } = event;
  const duration = 'durationMs' in event && event.durationMs !== undefined ? `ran ${span(event.durationMs)}` : '';
  const error = 'error' in event ? event.error : '';
  const cells = [
    out.isTerminal ? times.shown(at) : at.toISOString(),
    type,
    id,
    `attempt ${attempt}`,
    `late ${span(latenessMs)}`,
    duration,
    error,
  ];
  const shown = out.isTerminal ? cells.filter((cell) => cell !== '') : cells;
  out.line(shown.map((cell) => out.safe(cell)).join(out.isTerminal ? '  ' : '\t'));
}
