import type { Command } from 'commander';
import type { JobSnapshot } from '../../redis/job-snapshot.js';
import { assertStoredId } from '../../job/job-id.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { notFound } from '../exit-codes.js';
import { iso } from '../terminal/times.js';
import { attemptsOf, payloadText } from './job-columns.js';

export function addGet(program: Command): void {
  program
    .command('get')
    .argument('<queue>')
    .argument('<id>')
    .description('one job, with its payload and its last error')
    .option('--group <group>', 'of the job')
    .action(
      action(async (cli, { group }: { group?: string }, queue: string, id: string) => {
        assertStoredId(id, 'id');
        const session = await cli.connect([queue]);
        const job = await session.producer.get(queue, id, group === undefined ? undefined : { group });
        if (!job) throw notFound(`Queue "${queue}" has no job "${id}".`);
        showJob(cli, job, await session.now());
      }),
    );
}

function showJob({ out, times }: Cli, job: JobSnapshot, now: number): void {
  const time = (label: string, at: Date | undefined) =>
    [label, at && `${times.shown(at)}  (${times.relative(at, now)})`, iso(at)] as const;
  const { lastError, errors = [], context } = job;
  const labels = Object.entries(context);
  out.record(
    [
      ['id', job.id],
      ['queue', job.queue],
      ['state', job.state],
      time('enqueued', job.enqueuedAt),
      time('due', job.dueAt),
      time('completed', job.completedAt),
      ['attempts', attemptsOf(job)],
      ['dead because', job.deadReason],
      ['context', labels.length > 0 ? labels.map(([key, value]) => `${key}=${value}`).join(' ') : undefined],
      ['payload', payloadText(job.payload)],
      ['last error', lastError && (lastError.stack ?? `${lastError.name}: ${lastError.message}`)],
      [
        'errors',
        errors.length > 1
          ? errors.map(({ at, name, message }) => `${times.shown(at)}  ${name}: ${message}`).join('\n')
          : undefined,
      ],
    ],
    job,
  );
}
