import type { Command } from 'commander';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT, notFound } from '../exit-codes.js';
import { assertJobId } from '../../job/job-id.js';
import { assertQueueName } from '../../job/queue-name.js';
import { addActFlags } from '../mend/chosen-jobs.js';
import type { ActFlags } from '../mend/chosen-jobs.js';
import { confirm } from '../terminal/confirmation.js';
import { counted } from '../terminal/numbers.js';
import { BullmqImport } from './bullmq-import.js';
import type { ImportReport } from './bullmq-import.js';
import { REASONS } from './bullmq-plan.js';
import type { Reason } from './bullmq-plan.js';
import { BullmqSource } from './bullmq-source.js';

interface Flags extends ActFlags {
  fromPrefix: string;
  fromRedis?: string;
  idPrefix: string;
}

export function addImport(program: Command): void {
  const command = program
    .command('import')
    .description('takes over jobs of another library')
    .command('bullmq')
    .argument('<source>', 'queue of BullMQ')
    .argument('<queue>', 'queue here; {name} in it stands for the name of a job')
    .description('delayed and waiting jobs of BullMQ, while its workers go on')
    .option('--from-prefix <text>', 'prefix of BullMQ', 'bull')
    .option('--from-redis <url>', 'another server than that of --redis')
    .option('--id-prefix <text>', 'put before the ids', '');
  addActFlags(command).action(
    action(async (cli, flags: Flags, from: string, queue: string) => {
      assertQueueName(queue.replaceAll('{name}', 'name'), 'queue');
      // With something behind it, as an id will be.
      assertJobId(`${flags.idPrefix}1`, '--id-prefix');
      const session = await cli.connect();
      const { connectionTo } = await import('../connection/other-server.js');
      const connection = await connectionTo(session, flags.fromRedis);
      try {
        const source = new BullmqSource(connection, flags.fromPrefix, from);
        if (!(await source.exists()))
          throw notFound(`There is no queue "${from}" of BullMQ under the prefix "${flags.fromPrefix}".`);
        return await imported(cli, session, source, { queue, idPrefix: flags.idPrefix }, flags);
      } finally {
        if (connection !== session.context.connection) connection.close();
      }
    }),
  );
}

type To = { queue: string; idPrefix: string };

async function imported(cli: Cli, session: Session, source: BullmqSource, to: To, flags: Flags): Promise<number> {
  const foreseen = await new BullmqImport(cli, session, source, to).foresee();
  const { active, failed, completed } = await source.others();
  const held = (await source.held()).length;
  cli.out.note(`Left in BullMQ: ${active} active, ${failed} failed, ${completed} completed.`);
  if (await source.isPaused()) {
    cli.out.note(
      `Queue "${source.queue}" of BullMQ is paused. Here its jobs run: pause their queues here first, if they must not.`,
    );
  }
  if (held > 0) cli.out.note('An import before this one was interrupted: its jobs are brought to an end first.');
  if (flags.dryRun) return tell(cli, source.queue, foreseen, true);
  if (foreseen.imported + held > 0) {
    const question = `Import ${counted(foreseen.imported, 'job')} of "${source.queue}" into ${Object.keys(foreseen.queues).join(', ') || to.queue}?`;
    await confirm({ question, yes: flags.yes });
  }
  cli.interruption.act();
  const run = new BullmqImport(cli, session, source, to);
  try {
    await run.run();
  } catch (error) {
    tell(cli, source.queue, run.report, false);
    throw error;
  }
  return tell(cli, source.queue, run.report, false);
}

function tell({ out, interruption }: Cli, source: string, report: ImportReport, dryRun: boolean): number {
  const { imported, queues, stayed } = report;
  const stays = Object.entries(stayed) as [Reason, number][];
  if (out.isJson) out.json({ source, ...report, dryRun });
  else {
    for (const [queue, jobs] of Object.entries(queues)) out.line(`${out.safe(queue)}\t${jobs}`);
  }
  for (const [reason, jobs] of stays) out.note(`Left in BullMQ: ${counted(jobs, 'job')} ${REASONS[reason]}.`);
  const rest = interruption.happened ? ' Interrupted: call it again, and it goes on.' : '';
  out.note(`${dryRun ? 'Would be imported' : 'Imported'}: ${counted(imported, 'job')}.${rest}`);
  if (stays.length > 0) return imported > 0 ? EXIT.partly : EXIT.refused;
  return imported > 0 ? EXIT.done : EXIT.notFound;
}
