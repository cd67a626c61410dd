import type { Command } from 'commander';
import type { DelayQueueInspector } from '../../inspection/delay-queue.inspector.js';
import { RESHARD_RULES } from '../../inspection/inspector-options.js';
import type { ReshardDraft } from '../../inspection/inspector-options.js';
import { readOptions } from '../../job/option-rules.js';
import { action } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { confirm } from '../terminal/confirmation.js';
import { asFlags } from '../terminal/flag-names.js';
import { counted, countOf } from '../terminal/numbers.js';
import { addActFlags } from './chosen-jobs.js';
import type { ActFlags } from './chosen-jobs.js';

type Switch = 'pause' | 'resume' | 'pausePublishing' | 'resumePublishing';

const SWITCHES: readonly (readonly [command: string, call: Switch, description: string])[] = [
  ['pause', 'pause', 'no process claims jobs of the queue any more; running ones end'],
  ['resume', 'resume', 'undoes pause'],
  ['pause-publishing', 'pausePublishing', 'every enqueue is refused; stored jobs run on'],
  ['resume-publishing', 'resumePublishing', 'undoes pause-publishing'],
];
const MOST_SHARDS = 256;

export function addSwitches(program: Command): void {
  for (const [name, call, description] of SWITCHES) {
    program
      .command(name)
      .argument('<queue>')
      .description(description)
      .action(
        action(async (cli, _: object, queue: string) => {
          const { inspector } = await cli.connect([queue]);
          await switched(inspector, call, queue);
          const { paused, publishingPaused } = await inspector.counts(queue);
          const row = { queue, paused, publishingPaused };
          if (cli.out.isJson) cli.out.json(row);
          else
            cli.out.line(`${cli.out.safe(queue)}\t${paused ? 'paused' : publishingPaused ? 'publishingPaused' : 'ok'}`);
        }),
      );
  }
}

function switched(inspector: DelayQueueInspector, call: Switch, queue: string): Promise<void> {
  return inspector[call](queue);
}

export function addReshard(program: Command): void {
  const command = program
    .command('reshard')
    .argument('<queue>')
    .description('changes the number of shards; the queue is shut meanwhile')
    .requiredOption('--to <n>', 'shards from then on')
    .option('--wait <duration>', 'how long running jobs may take to end', '1m');
  addActFlags(command).action(
    action(async (cli, flags: ActFlags & { to: string; wait: string }, queue: string) => {
      const to = countOf(flags.to, '--to', MOST_SHARDS);
      readOptions({ wait: flags.wait }, RESHARD_RULES, {} as ReshardDraft, asFlags);
      const { context, inspector } = await cli.connect([queue]);
      const from = context.stores(queue).length;
      const { delayed, due, dead } = await inspector.counts(queue).catch(() => ({ delayed: NaN, due: NaN, dead: NaN }));
      const { out } = cli;
      if (flags.dryRun) {
        if (out.isJson) out.json({ queue, from, to, dryRun: true });
        else out.line(`${from} -> ${to}`);
        return EXIT.done;
      }
      const jobs = delayed + due + dead;
      const size = Number.isNaN(jobs) ? '' : `, which has ${counted(jobs, 'job')},`;
      const question = `Change queue "${queue}"${size} from ${from} to ${counted(to, 'shard')}? It is shut meanwhile, and processes with another number are refused afterwards.`;
      await confirm({ question, yes: flags.yes });
      cli.interruption.act();
      const result = await inspector.reshard(queue, { to, wait: flags.wait });
      if (out.isJson) out.json({ queue, ...result, dryRun: false });
      else out.line(`${result.from} -> ${result.to}\t${result.moved}`);
      return EXIT.done;
    }),
  );
}
