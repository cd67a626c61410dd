import { Option } from 'commander';
import type { Command } from 'commander';
import type { DelayQueueHealthResult } from '../../health/delay-queue.health.js';
import { parseDuration } from '../../job/duration.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { CommandError, EXIT, exitCodeOf, HEALTH_EXIT } from '../exit-codes.js';
import { counted, countOf } from '../terminal/numbers.js';
import { span } from '../terminal/times.js';
import { readQueues } from './queues.js';
import type { QueueRow } from './queues.js';

interface Flags {
  failOn: 'degraded' | 'down';
  lag: string;
  dead?: string;
}

type Report = Pick<DelayQueueHealthResult, 'status' | 'reasons' | 'redis' | 'orphans'>;

export function addHealth(program: Command): void {
  program
    .command('health')
    .description('for monitors: exit code 0 up, 1 degraded, 2 down')
    .addOption(
      new Option('--fail-on <status>', 'from which status on').choices(['degraded', 'down']).default('degraded'),
    )
    .option('--lag <duration>', 'degraded when a queue lags so far behind', '30s')
    .option('--dead <n>', 'degraded when a queue has more dead letters')
    .action(
      action(async (cli, flags: Flags) => {
        const report = await judged(cli, flags);
        if (cli.out.isJson) cli.out.json(report);
        else {
          const style = ({ up: 'green', degraded: 'yellow', down: 'red' } as const)[report.status];
          cli.out.line([cli.out.isTerminal ? cli.out.styled(report.status, style) : report.status].join(''));
          for (const reason of report.reasons) cli.out.note(reason);
        }
        return flags.failOn === 'down' && report.status === 'degraded' ? HEALTH_EXIT.up : HEALTH_EXIT[report.status];
      }),
    );
}

async function judged(cli: Cli, flags: Flags): Promise<Report> {
  const lagMs = parseDuration(flags.lag, '--lag');
  const most = flags.dead === undefined ? Infinity : countOf(flags.dead, '--dead');
  try {
    const session = await cli.connect();
    const { DelayQueueHealth } = await import('../../health/delay-queue.health.js');
    const { status, reasons, redis, orphans } = await new DelayQueueHealth(session.context, () => undefined).check();
    const queues =
      redis.status === 'up' ? (await readQueues(session, session.names)).flatMap(complaints(lagMs, most)) : [];
    const isDegraded = status === 'up' && queues.length > 0;
    return {
      status: isDegraded ? 'degraded' : status,
      reasons: [...reasons, ...queues],
      redis,
      ...(orphans && { orphans }),
    };
  } catch (error) {
    if (error instanceof CommandError || exitCodeOf(error) !== EXIT.redis) throw error;
    return { status: 'down', reasons: [(error as Error).message], redis: { status: 'down' } };
  }
}

const complaints =
  (lagMs: number, most: number) =>
  ({ queue, lagMs: lag = 0, dead = 0, paused }: QueueRow): string[] => [
    ...(lag > lagMs && !paused ? [`Queue "${queue}" lags ${span(lag)} behind.`] : []),
    ...(dead > most ? [`Queue "${queue}" has ${counted(dead, 'dead letter')}.`] : []),
  ];
