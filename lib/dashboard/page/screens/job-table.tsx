import type { ApiJobState, ErrorText, JobRow } from '../../api.js';
import { canWrite } from '../live.js';
import { Badge, REASONS, When } from '../parts/basic.js';
import { linkTo } from '../route.js';
import type { Selection } from '../selection.js';

const TIMES: Readonly<Record<ApiJobState, string>> = {
  delayed: 'Due',
  due: 'Due',
  running: 'Due',
  dead: 'Was due',
  completed: 'Completed',
};

interface JobTableProps {
  readonly rows: readonly JobRow[];
  readonly state: ApiJobState;
  readonly selection: Selection;
}

export function JobTable({ rows, state, selection }: JobTableProps) {
  const ids = selection.ids.value;
  const canSelect = canWrite.value && state !== 'completed';
  const isAll = rows.every(({ id }) => ids.has(id));
  return (
    <div class="scroll">
      <table class="cards">
        <thead>
          <tr>
            {canSelect && (
              <th class="tick">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={isAll}
                  onChange={() => selection.set(isAll ? [] : rows.map(({ id }) => id))}
                />
              </th>
            )}
            <th>Job</th>
            <th>{TIMES[state]}</th>
            <th class="number">Attempts</th>
            <th>{state === 'dead' ? 'Cause' : 'Last error'}</th>
            <th>Payload</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.id} row={row} selection={canSelect ? selection : undefined} isSelected={ids.has(row.id)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly row: JobRow;
  readonly selection: Selection | undefined;
  readonly isSelected: boolean;
}

function Row({ row, selection, isSelected }: RowProps) {
  const { id, queue, state, attempts, maxAttempts, quarantined, preview } = row;
  return (
    <tr data-row tabIndex={-1}>
      {selection && (
        <td class="tick">
          <input
            type="checkbox"
            aria-label={`Select ${id}`}
            checked={isSelected}
            onChange={({ currentTarget }) => selection.toggle(id, currentTarget.checked)}
          />
        </td>
      )}
      <td class="main-cell">
        <a data-open class="mono" href={linkTo('job', { queue, id })}>
          {id}
        </a>
        {row.group !== undefined && <span class="muted small"> {row.group}</span>}
        {quarantined && (
          <>
            {' '}
            <Badge tone="warn" title="Its process was lost; it runs apart from others.">
              quarantine
            </Badge>
          </>
        )}
      </td>
      <td>
        <When at={state === 'completed' ? row.completedAt : row.dueAt} />
      </td>
      <td class={`number ${attempts === 0 ? 'zero' : ''}`} data-label="Attempts">
        {attempts}
        {maxAttempts !== undefined && <span class="muted"> / {maxAttempts}</span>}
      </td>
      <td class="whole">
        <Cause row={row} />
      </td>
      <td class="whole">{preview !== undefined && <code class="preview">{preview}</code>}</td>
    </tr>
  );
}

function Cause({ row: { deadReason, lastError } }: { row: JobRow }) {
  return (
    <div class="preview">
      {deadReason && <strong class="bad">{REASONS[deadReason]}</strong>}
      {deadReason && lastError && ': '}
      {lastError && errorLine(lastError)}
    </div>
  );
}

export function errorLine({ name, message }: ErrorText): string {
  return message ? `${name}: ${message}` : name;
}
