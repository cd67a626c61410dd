import type { Command } from 'commander';
import type { GroupOption } from '../../instance/job-shards.js';
import type { DelayQueueProducer } from '../../producer/delay-queue.producer.js';
import type { JobSnapshot } from '../../redis/job-snapshot.js';
import { sleep } from '../../time-and-randomness.js';
import { DelayQueueError, ShardCountError } from '../../delay-queue.errors.js';
import { assertStoredId } from '../../job/job-id.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { EXIT, notFound } from '../exit-codes.js';
import { attemptsOf, errorText, withoutPayload } from './job-columns.js';

const LOOK_EVERY_MS = 500;

export function addWatch(program: Command): void {
  program
    .command('watch')
    .argument('<queue>')
    .argument('<id>')
    .description('one job until it ends: each change of its state')
    .option('--group <group>', 'of the job')
    .action(
      action(async (cli, { group }: { group?: string }, queue: string, id: string) => {
        assertStoredId(id, 'id');
        const inGroup = group === undefined ? undefined : { group };
        let session = await cli.connect([queue]);
        let job = await session.producer.get(queue, id, inGroup);
        if (!job) throw notFound(`Queue "${queue}" has no job "${id}".`);
        let seen = '';
        for (;;) {
          const now = `${job.state} ${job.attempts} ${job.dueAt.getTime()}`;
          if (now !== seen) tell(cli, job);
          seen = now;
          if (job.state === 'dead') return EXIT.refused;
          if (job.state === 'completed') return EXIT.done;
          await sleep(LOOK_EVERY_MS);
          const next = await lookedUp(session.producer, queue, id, inGroup);
          if (next === 'gone') return gone(cli, queue, id);
          if (next === 'resharded') session = await session.again().catch(() => session);
          else job = next ?? job;
        }
      }),
    );
}

/** Undefined while Redis is away, of which the connection tells: a job may take hours, and a restart of Redis is not its end. */
async function lookedUp(
  producer: DelayQueueProducer,
  queue: string,
  id: string,
  inGroup: GroupOption | undefined,
): Promise<JobSnapshot | 'gone' | 'resharded' | undefined> {
  try {
    return (await producer.get(queue, id, inGroup)) ?? 'gone';
  } catch (error) {
    if (error instanceof ShardCountError) return 'resharded';
    if (error instanceof DelayQueueError && error.retryable) return undefined;
    throw error;
  }
}

function tell({ out, times }: Cli, job: JobSnapshot): void {
  if (out.isJson) return out.json(withoutPayload(job));
  const { state, dueAt, deadReason } = job;
  const due = out.isTerminal ? times.shown(dueAt) : dueAt.toISOString();
  const what = state === 'dead' ? `${deadReason}: ${errorText(job)}` : errorText(job);
  const cells = [state, `attempt ${attemptsOf(job)}`, `due ${due}`, what].filter((cell) => cell !== '');
  out.line(cells.map((cell) => out.safe(cell)).join(out.isTerminal ? '  ' : '\t'));
}

/** Only queues with `keepCompleted` know more of what has ended. */
function gone({ out }: Cli, queue: string, id: string): number {
  if (out.isJson) out.json({ queue, id, state: 'gone' });
  else out.line('gone');
  out.note('It was completed, cancelled, expired or moved: the queue keeps nothing of it.');
  return EXIT.done;
}
