import type { Command } from 'commander';
import { isUnattended, parseCounts } from '../../redis/counts.protocol.js';
import { evictionProblem, readServerFacts } from '../../redis/server-check.js';
import type { ServerFacts } from '../../redis/server-check.js';
import { action } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT } from '../exit-codes.js';
import type { ExitCode } from '../exit-codes.js';
import { counted } from '../terminal/numbers.js';
import type { Column, Style } from '../terminal/output.js';
import { span } from '../terminal/times.js';

interface Finding {
  check: string;
  status: 'ok' | 'warning' | 'bad';
  what: string;
}

const STYLES: Record<Finding['status'], Style> = { ok: 'green', warning: 'yellow', bad: 'red' };
const MEMORY_FULL = 0.8;
const AT_ONCE = 20;

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('looks at the server and at each queue for what goes wrong sooner or later')
    .action(
      action(async (cli): Promise<ExitCode> => {
        const session = await cli.connect();
        const ofServer = await serverFindings(session);
        const ofQueues = await queueFindings(session);
        const columns: Column<Finding>[] = [
          { title: 'status', of: ({ status }) => status },
          { title: 'check', of: ({ check }) => check },
          { title: 'what', of: ({ what }) => what },
        ];
        const { out } = cli;
        if (!out.isTerminal) out.table(columns, [...ofServer, ...ofQueues]);
        else
          for (const { status, check, what } of [...ofServer, ...ofQueues]) {
            out.line(`${out.styled(status.padEnd(7), STYLES[status])}  ${out.safe(check)}: ${out.safe(what)}`);
          }
        if (ofServer.some(({ status }) => status === 'bad')) return EXIT.redis;
        return ofQueues.some(({ status }) => status === 'bad') ? EXIT.failed : EXIT.done;
      }),
    );
}

async function serverFindings({ context, location }: Session): Promise<Finding[]> {
  const reached: Finding = {
    check: 'connection',
    status: 'ok',
    what: `${location} answers, and its user may run scripts`,
  };
  try {
    return [reached, ...judged(await readServerFacts(context.connection))];
  } catch (error) {
    const what = `the server does not tell about itself: ${(error as Error).message}`;
    return [reached, { check: 'INFO', status: 'warning', what }];
  }
}

function judged(facts: ServerFacts): Finding[] {
  const { version, evictionPolicy, persisted, appendOnly, replicas, usedMemory, maxMemory } = facts;
  const evicting = evictionProblem(evictionPolicy);
  const part = maxMemory > 0 ? usedMemory / maxMemory : 0;
  const megabytes = (bytes: number) => `${Math.round(bytes / 1024 ** 2)} MB`;
  return [
    { check: 'version', status: 'ok', what: version },
    { check: 'eviction', status: evicting ? 'bad' : 'ok', what: evicting ?? evictionPolicy },
    {
      check: 'memory',
      status: part >= MEMORY_FULL ? 'warning' : 'ok',
      what:
        maxMemory > 0
          ? `${megabytes(usedMemory)} of ${megabytes(maxMemory)}`
          : `${megabytes(usedMemory)}, without a limit`,
    },
    {
      check: 'persistence',
      status: persisted || replicas > 0 ? 'ok' : 'warning',
      what: appendOnly
        ? 'append-only file'
        : persisted
          ? 'snapshots: a crash loses what came since the last one'
          : 'no append-only file and no snapshot: a restart may lose all jobs. Set appendonly yes.',
    },
    { check: 'replicas', status: 'ok', what: String(replicas) },
  ];
}

async function queueFindings(session: Session): Promise<Finding[]> {
  const found: Finding[] = [];
  const { names } = session;
  for (let at = 0; at < names.length; at += AT_ONCE) {
    found.push(...(await Promise.all(names.slice(at, at + AT_ONCE).map((queue) => ofQueue(session, queue)))).flat());
  }
  return found;
}

/** Also says whether the layout of what is stored is one that this version knows: else the look at it is refused. */
async function ofQueue({ context }: Session, queue: string): Promise<Finding[]> {
  const check = `queue ${queue}`;
  const say = (status: Finding['status'], what: string): Finding => ({ check, status, what });
  const stores = context.stores(queue);
  try {
    const shards = await Promise.all(stores.map(async (store) => parseCounts(await store.call('counts', []))));
    const all = (of: 'due' | 'running' | 'dead') => shards.reduce((sum, counts) => sum + counts[of], 0);
    const isPaused = shards.some(({ paused }) => paused);
    const isConsumed = !shards.some(isUnattended);
    const lateMs = Math.max(...shards.map(({ schedulesLateMs }) => schedulesLateMs));
    const pieces = shards.length > 1 ? `, ${shards.length} shards` : '';
    const findings = [
      ...(isConsumed || isPaused || all('due') + all('running') === 0
        ? []
        : [say('bad', `no live process claims what is due: ${counted(all('due'), 'job')}`)]),
      ...(isPaused ? [say('warning', 'is paused: no process claims its jobs')] : []),
      ...(shards.some(({ publishingPaused }) => publishingPaused)
        ? [say('warning', 'its publishing is paused: every enqueue is refused')]
        : []),
      ...(lateMs > 60_000
        ? [say('bad', `a schedule has needed more occurrences for ${span(lateMs)}, and no process makes them`)]
        : []),
      ...(all('dead') > 0 ? [say('warning', counted(all('dead'), 'dead letter'))] : []),
    ];
    const consumed = isConsumed ? 'live processes work on it' : 'no live process works on it, and no job is due';
    return findings.length > 0 ? findings : [say('ok', consumed + pieces)];
  } catch (error) {
    if (!context.connection.isReady) throw error;
    return [say('bad', `cannot be read: ${(error as Error).message}`)];
  }
}
