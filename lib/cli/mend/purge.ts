import type { Command } from 'commander';
import { PURGED_STATES, ShardCalls } from '../../inspection/shard-calls.js';
import type { PurgedState } from '../../inspection/shard-calls.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT, usage } from '../exit-codes.js';
import { confirm } from '../terminal/confirmation.js';
import { counted } from '../terminal/numbers.js';
import { addActFlags } from './chosen-jobs.js';
import type { ActFlags } from './chosen-jobs.js';

const PART = 2_000;

export function addPurge(program: Command): void {
  const command = program
    .command('purge')
    .argument('<queue>')
    .description('removes all jobs in some states; running ones stay')
    .option('--states <list>', 'of waiting, dead, completed', 'waiting,dead');
  addActFlags(command).action(
    action(async (cli, flags: ActFlags & { states: string }, queue: string) => {
      const states = statesOf(flags.states);
      const session = await cli.connect([queue]);
      const counts = await new ShardCalls(session.context).purgeable(queue);
      const count = counts.reduce((sum, shard) => sum + states.reduce((of, state) => of + shard[state], 0), 0);
      if (flags.dryRun || count === 0) return tell(cli, queue, count, count, flags.dryRun);
      const question = `Purge ${counted(count, 'job')} (${states.join(', ')}) of queue "${queue}" for good?`;
      await confirm({ question, word: queue, yes: flags.yes });
      return tell(cli, queue, await purged(cli, session, queue, states, counts), count);
    }),
  );
}

function statesOf(text: string): PurgedState[] {
  const states = text.split(',').map((state) => state.trim());
  const wrong = states.find((state) => !PURGED_STATES.some((known) => known === state));
  if (wrong !== undefined) throw usage(`--states: "${wrong}" is none of ${PURGED_STATES.join(', ')}.`);
  return [...new Set(states)] as PurgedState[];
}

/** No more than there were. Ctrl C ends it between two parts. */
async function purged(
  { interruption, out }: Cli,
  session: Session,
  queue: string,
  states: readonly PurgedState[],
  counts: readonly Record<PurgedState, number>[],
): Promise<number> {
  const calls = new ShardCalls(session.context);
  interruption.act();
  let done = 0;
  for (const [shard, found] of counts.entries()) {
    for (const state of states) {
      for (let left = found[state]; left > 0 && !interruption.happened;) {
        const most = Math.min(PART, left);
        const removed = await calls.purge(queue, state, [shard], most);
        done += removed;
        left -= removed;
        out.progress(counted(done, 'job'));
        if (removed === 0) break;
      }
    }
  }
  return done;
}

function tell({ out, interruption }: Cli, queue: string, removed: number, count: number, dryRun = false): number {
  if (out.isJson) out.json({ queue, removed, dryRun });
  else out.line(out.isTerminal ? `${dryRun ? 'Would be ' : ''}removed: ${removed}` : `removed\t${removed}`);
  if (interruption.happened) out.note(`Interrupted after ${removed} of ${counted(count, 'job')}.`);
  return count === 0 ? EXIT.notFound : EXIT.done;
}
