import { hostname } from 'node:os';
import { pid, version as node } from 'node:process';
import { evictionProblem, readServerFacts } from '../../redis/server-check.js';
import type { ServerFacts } from '../../redis/server-check.js';
import { typedError } from '../../redis/redis.errors.js';
import { performance } from '../../time-and-randomness.js';
import { LIBRARY_VERSION } from '../../version.js';
import type { ServerResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

/** INFO, and a look at all queues. */
const VALID_MS = 5_000;
const MOST_SHARDED = 200;

export async function readServer(view: InstanceView, query: Fields): Promise<ServerResponse> {
  query.end();
  return view.shared.value('server', VALID_MS, () => server(view));
}

async function server(view: InstanceView): Promise<ServerResponse> {
  const { context } = view;
  const { connection, options } = context;
  const latencyMs = await latencyOf(view);
  // A server that does not permit INFO can still be looked at.
  const facts = await readServerFacts(connection).catch((error: unknown) => error as Error);
  const health = await view.health.check();
  const { durability } = options;
  return {
    address: connection.address,
    ...(facts instanceof Error
      ? { problem: `INFO of Redis cannot be read: ${facts.message}` }
      : { server: shown(facts) }),
    latencyMs,
    health: health.status,
    findings: [...health.reasons, ...(facts instanceof Error ? [] : findings(facts, health.reasons))],
    prefix: options.prefix,
    durability: typeof durability === 'string' ? durability : JSON.stringify(durability),
    shards: Object.entries(options.queues)
      .flatMap(([queue, settings]) => ((settings?.shards ?? 1) > 1 ? [{ queue, shards: settings!.shards! }] : []))
      .slice(0, MOST_SHARDED),
    process: { pid, host: hostname(), node, version: LIBRARY_VERSION },
  };
}

async function latencyOf({ context: { connection } }: InstanceView): Promise<number> {
  try {
    await connection.whenReady();
    const since = performance.now();
    await connection.send(() => (connection.commands as { ping(): Promise<string> }).ping());
    return Math.round((performance.now() - since) * 10) / 10;
  } catch (error) {
    throw typedError(error, 'a look at the server');
  }
}

function shown(facts: ServerFacts): ServerResponse['server'] {
  const { version, usedMemory, maxMemory, evictionPolicy, persisted, appendOnly, replicas, clustered, inProcess } =
    facts;
  return { version, usedMemory, maxMemory, evictionPolicy, persisted, appendOnly, replicas, clustered, inProcess };
}

/** What the checks of the start say as well, and health does not. */
function findings(facts: ServerFacts, known: readonly string[]): string[] {
  const evicting = evictionProblem(facts.evictionPolicy);
  const found = evicting && !known.some((reason) => reason.includes(evicting)) ? [`Redis ${evicting}`] : [];
  if (facts.inProcess) found.push('Jobs are kept in this process only: they do not survive it.');
  else if (!facts.persisted && facts.replicas === 0) {
    found.push(
      'Redis has no append-only file, no snapshot since it started and no replica: a restart of it may lose all jobs. ' +
        'Set appendonly yes.',
    );
  }
  return found;
}
