import type { Command } from 'commander';
import type { StoredLimits } from '../../inspection/limit-calls.js';
import type { QueueLimits } from '../../job/queue-limits.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { usage } from '../exit-codes.js';
import { confirm } from '../terminal/confirmation.js';
import { addActFlags } from './chosen-jobs.js';
import type { ActFlags } from './chosen-jobs.js';
import { fieldsOf, limitsIn } from './limit-words.js';
import { limitsSentence } from '../../job/shown-limits.js';

interface LimitFlags extends ActFlags {
  set?: string[];
  clear?: boolean;
  fromConfig?: boolean;
}

/** What is asked for; `look`: nothing is changed. */
type Act = { readonly to: QueueLimits | 'config' | undefined } | 'look';

export function addLimits(program: Command): void {
  const command = program
    .command('limits')
    .argument('<queue>')
    .description('which limits hold, and who set them; --set, --clear and --from-config change them')
    .option('--set <limit...>', 'these and no others, such as globalConcurrency=20 rateLimit=100/1m')
    .option('--clear', 'no limits')
    .option('--from-config', 'those again that the applications say');
  addActFlags(command).action(
    action(async (cli, flags: LimitFlags, queue: string) => {
      const act = actOf(flags);
      const { context, inspector } = await cli.connect([queue]);
      const before = await inspector.limits(queue);
      if (act === 'look') return show(cli, queue, before);
      const { LimitCalls } = await import('../../inspection/limit-calls.js');
      await new LimitCalls(context, queue).checked(act.to);
      const after = limitsAfter(act.to, before);
      if (flags.dryRun) return show(cli, queue, after, true);
      const change = `from ${limitsSentence(before.limits)} to ${limitsSentence(after.limits)}`;
      const until = act.to === 'config' ? '' : ', whatever its applications say';
      await confirm({ question: `Change queue "${queue}" ${change}${until}?`, yes: flags.yes });
      await inspector.setLimits(queue, act.to);
      return show(cli, queue, await inspector.limits(queue), false);
    }),
  );
}

/** @throws CommandError for several acts at a time, and for what is no limit */
function actOf({ set, clear, fromConfig, dryRun }: LimitFlags): Act {
  const acts = [set !== undefined, clear, fromConfig].filter(Boolean).length;
  if (acts > 1) throw usage('Give one of --set, --clear and --from-config.');
  if (acts === 0 && dryRun) throw usage('--dry-run: say what to try by --set, --clear or --from-config.');
  if (acts === 0) return 'look';
  return { to: set !== undefined ? limitsIn(set) : clear ? undefined : 'config' };
}

function limitsAfter(to: QueueLimits | 'config' | undefined, before: StoredLimits): StoredLimits {
  const config = before.setBy === 'config' ? before.limits : before.config;
  return to === 'config' ? { limits: config, setBy: 'config' } : { limits: to, setBy: 'operator', config };
}

function show({ out }: Cli, queue: string, stored: StoredLimits, dryRun?: boolean): void {
  const { limits = null, setBy, config } = stored;
  const object = { queue, limits, setBy, ...(setBy === 'operator' && { config: config ?? null }) };
  out.record(fieldsOf(stored), dryRun === undefined ? object : { ...object, dryRun });
  if (limits === null && out.isTerminal) out.note('No limits.');
}
