import type { ComponentChildren } from 'preact';
import type { ServerResponse } from '../../api.js';
import { bytes, count, duration } from '../format.js';
import { Badge, Figure, Loading, Trouble } from '../parts/basic.js';
import type { Tone } from '../parts/basic.js';
import { linkTo } from '../route.js';
import { useData } from '../use-data.js';

const HEALTH: Readonly<Record<ServerResponse['health'], Tone>> = { up: 'good', degraded: 'warn', down: 'bad' };

export function ServerScreen() {
  const { value, problem, reload } = useData('server', {}, { everyMs: 10_000 });
  if (problem && !value) return <Trouble problem={problem} retry={reload} />;
  if (!value) return <Loading />;
  const { health, latencyMs, server } = value;
  return (
    <>
      <dl class="figures">
        <Figure name="Health" tone={HEALTH[health]}>
          {health}
        </Figure>
        <Figure name="Round trip">{duration(latencyMs)}</Figure>
        {server && <Memory server={server} />}
        {server && (
          <Figure
            name="Survives a restart"
            tone={server.persisted ? 'good' : 'bad'}
            note={server.appendOnly ? 'append-only file' : server.persisted ? 'snapshots' : undefined}
          >
            {server.persisted ? 'yes' : 'no'}
          </Figure>
        )}
        {server && <Figure name="Replicas">{count(server.replicas)}</Figure>}
      </dl>
      <Findings value={value} />
      <div class="two">
        <section class="card pad stack" aria-label="Redis">
          <h2>Redis</h2>
          <RedisFacts value={value} />
        </section>
        <Process value={value} />
      </div>
    </>
  );
}

function Findings({ value: { health, findings } }: { value: ServerResponse }) {
  return (
    <section class="card pad stack" aria-label="Findings">
      <h2>What health and start-up checks found</h2>
      {findings.length === 0 ? (
        <p class="good">Nothing to mend.</p>
      ) : (
        <ul class="stack">
          {findings.map((finding) => (
            <li key={finding} class="wrap">
              <Badge tone={health === 'down' ? 'bad' : 'warn'}>look</Badge> {finding}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Process({ value }: { value: ServerResponse }) {
  const { shards } = value;
  return (
    <section class="card pad stack" aria-label="This process">
      <h2>This process</h2>
      <dl class="facts">
        <Fact name="Host">{value.process.host}</Fact>
        <Fact name="pid">{value.process.pid}</Fact>
        <Fact name="Node">{value.process.node.replace(/^v/, '')}</Fact>
        <Fact name="nestjs-delay-queue">{value.process.version}</Fact>
      </dl>
      {shards.length > 0 && (
        <>
          <h3>Queues with shards</h3>
          <dl class="facts">
            {shards.map(({ queue, shards: many }) => (
              <Fact key={queue} name={queue} href={linkTo('timeline', { queue })}>
                {many}
              </Fact>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

function Memory({ server: { usedMemory, maxMemory } }: { server: NonNullable<ServerResponse['server']> }) {
  const part = maxMemory === 0 ? 0 : usedMemory / maxMemory;
  return (
    <Figure
      name="Memory"
      tone={part > 0.8 ? 'warn' : ''}
      note={maxMemory === 0 ? 'no limit' : `${Math.round(part * 100)} % of ${bytes(maxMemory)}`}
    >
      {bytes(usedMemory)}
    </Figure>
  );
}

function RedisFacts({ value: { address, server, problem, prefix, durability } }: { value: ServerResponse }) {
  return (
    <dl class="facts">
      <Fact name="Address">{address}</Fact>
      {problem && <Fact name="Not known">{problem}</Fact>}
      {server && (
        <>
          <Fact name="Version">{server.inProcess ? 'in this process: nothing survives it' : server.version}</Fact>
          <Fact name="Eviction policy">
            <span class={server.evictionPolicy === 'noeviction' || server.inProcess ? '' : 'bad'}>
              {server.evictionPolicy}
            </span>
          </Fact>
          <Fact name="Cluster">{server.clustered ? 'yes' : 'no'}</Fact>
        </>
      )}
      <Fact name="Prefix">
        <code>{prefix}</code>
      </Fact>
      <Fact name="Durability">{durability}</Fact>
    </dl>
  );
}

function Fact({ name, href, children }: { name: string; href?: string; children: ComponentChildren }) {
  return (
    <>
      <dt class="wrap">{href ? <a href={href}>{name}</a> : name}</dt>
      <dd>{children}</dd>
    </>
  );
}
