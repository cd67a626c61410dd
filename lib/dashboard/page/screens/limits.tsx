import type { LimitsResponse, RateRow } from '../../api.js';
import { count, duration } from '../format.js';
import { CountCell, Figure, Relative } from '../parts/basic.js';
import { useData } from '../use-data.js';

/** Of a queue that has limits or groups: how near it is to them, and whose jobs wait. */
export function Limits({ queue }: { queue: string }) {
  const { value } = useData('limits', { queue }, { everyMs: 5_000 });
  if (!value) return null;
  const { running, concurrency, rate, groups, limited, setBy } = value;
  const each = [most(value.groupConcurrency), rateText(value.groupRate)].filter(Boolean).join(', ');
  return (
    <section class="card" aria-label="Limits">
      <header>
        <h2>Limits</h2>
        <span class="muted small">
          {limited ? 'reached' : 'not reached'}, set by {setBy === 'config' ? 'the application' : 'an operator'}
        </span>
      </header>
      <dl class="figures">
        <Figure name="Running" tone={running === concurrency ? 'warn' : ''} note={most(concurrency)}>
          {count(running)}
        </Figure>
        {rate && <Figure name="Starts">{rateText(rate)}</Figure>}
        <Figure name="Groups" note={each && `each ${each}`}>
          {count(groups.total)}
        </Figure>
        <Figure name="In line" note={`${count(groups.limited)} at a limit`}>
          {count(groups.inLine)}
        </Figure>
      </dl>
      <Backlog value={value} />
    </section>
  );
}

const most = (many?: number) => many && `at most ${count(many)} at a time`;
const rateText = (rate?: RateRow) => rate && `${count(rate.max)} in ${duration(rate.perMs)}`;

function Backlog({ value: { backlog, looked } }: { value: LimitsResponse }) {
  if (backlog.length === 0) return null;
  return (
    <table class="cards">
      <thead>
        <tr>
          <th>Group, of {count(looked)} looked at</th>
          <th class="number">Due</th>
          <th class="number">Waiting</th>
          <th class="number">Running</th>
          <th>Goes on</th>
        </tr>
      </thead>
      <tbody>
        {backlog.map(({ group, due, waiting, running, limitedUntil }) => (
          <tr key={group}>
            <td class="main-cell">{group ?? <span class="muted">no group</span>}</td>
            <CountCell value={due} label="Due" tone="warn" />
            <CountCell value={waiting} label="Waiting" />
            <CountCell value={running} label="Running" />
            <td data-label="Goes on">{limitedUntil ? <Relative at={limitedUntil} /> : 'in its turn'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
