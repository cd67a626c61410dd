import type { ProcessRow } from '../../api.js';
import { count, duration } from '../format.js';
import { me } from '../live.js';
import { Badge, Empty, Loading, Relative, Trouble } from '../parts/basic.js';
import { linkTo, queueInView } from '../route.js';
import { total } from '../sums.js';
import { useData } from '../use-data.js';
import { NeedsHistory } from './lateness.js';

/** As health says: a claim loop that was not answered for so long is stuck. */
const STUCK_MS = 60_000;

export function ProcessesScreen() {
  const hasHistory = me.value?.features.history === true;
  const { value, problem, reload } = useData('processes', hasHistory ? {} : undefined, { everyMs: 5_000 });
  if (!hasHistory) return <NeedsHistory what="Which processes live" />;
  if (problem && !value) return <Trouble problem={problem} retry={reload} />;
  if (!value) return <Loading />;
  const { processes } = value;
  return (
    <section class="card" aria-label="Processes">
      {processes.length === 0 ? (
        <Empty title="No process shows itself">
          <p>Those that import the history module do so every 15 seconds.</p>
        </Empty>
      ) : (
        <div class="scroll">
          <table class="cards">
            <thead>
              <tr>
                <th>Process</th>
                <th>Up since</th>
                <th>Seen</th>
                <th>Slots</th>
                <th>Queues</th>
                <th>Version</th>
              </tr>
            </thead>
            <tbody>
              {processes.map((row) => (
                <Row key={row.name} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ row }: { row: ProcessRow }) {
  const { name, host, pid, version, node, startedAt, seenAt, draining, queues } = row;
  return (
    <tr data-row tabIndex={-1}>
      <td class="main-cell" title={name}>
        {host} <span class="muted">pid {pid}</span> {draining && <Badge tone="warn">draining</Badge>}
      </td>
      <td class="nowrap" data-label="Up since">
        <Relative at={startedAt} />
      </td>
      <td class="nowrap" data-label="Seen">
        <Relative at={seenAt} />
      </td>
      <td class="nowrap" data-label="Slots">
        <Slots busy={total(queues, ({ busy }) => busy)} slots={total(queues, ({ slots }) => slots)} />
      </td>
      <td class="whole">
        {queues.length === 0 && <span class="muted">works on no queue</span>}
        <ul>
          {queues.map((queue) => (
            <OfQueue key={queue.queue} {...queue} inView={queue.queue === queueInView.value} />
          ))}
        </ul>
      </td>
      <td class="nowrap muted small">
        {version}
        <br />
        Node {node.replace(/^v/, '')}
      </td>
    </tr>
  );
}

function OfQueue({
  queue,
  busy,
  slots,
  lastClaimMs,
  zombies,
  paused,
  inView,
}: ProcessRow['queues'][number] & { inView: boolean }) {
  return (
    <li class="row">
      <a class="wrap" href={linkTo('timeline', { queue })}>
        {inView ? <strong>{queue}</strong> : queue}
      </a>
      <span class="muted small nowrap">
        {count(busy)} of {count(slots)} busy, claimed {duration(lastClaimMs)} ago
      </span>
      {paused && <Badge tone="warn">paused</Badge>}
      {lastClaimMs > STUCK_MS && <Badge tone="bad">claim loop not answered</Badge>}
      {zombies > 0 && (
        <Badge tone="bad" title="Handlers that run on after their timeout">
          {count(zombies)} {zombies === 1 ? 'zombie' : 'zombies'}
        </Badge>
      )}
    </li>
  );
}

function Slots({ busy, slots }: { busy: number; slots: number }) {
  const part = slots === 0 ? 0 : busy / slots;
  return (
    <span class="slots">
      <svg class={`meter ${part >= 1 ? 'warn' : ''}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect width={part * 100} height="6" />
      </svg>
      {count(busy)} / {count(slots)}
    </span>
  );
}
