import { useMemo, useState } from 'preact/hooks';
import type { PayloadText } from '../../api.js';
import { count } from '../format.js';
import { indented, parseJson } from '../json-text.js';
import type { JsonNode } from '../json-text.js';

/** A payload as text or as a tree. Whatever is in it is text: nothing of it is ever taken for markup. */
export function Payload({ payload }: { payload: PayloadText }) {
  const [isTree, setTree] = useState(false);
  const text = 'text' in payload ? payload.text : '';
  const node = useMemo(() => (payload.kind === 'json' ? parseJson(text) : undefined), [payload.kind, text]);
  if (payload.kind === 'hidden') {
    return <p class="muted">{payload.problem ?? 'This application does not show payloads here.'}</p>;
  }
  if (payload.kind === 'undecodable') return <p class="bad wrap">{payload.problem}</p>;
  return (
    <div class="stack">
      {node && (
        <div class="choices" role="group" aria-label="Payload as">
          <button type="button" aria-pressed={!isTree} onClick={() => setTree(false)}>
            Text
          </button>
          <button type="button" aria-pressed={isTree} onClick={() => setTree(true)}>
            Tree
          </button>
        </div>
      )}
      {node && isTree ? (
        <div class="tree">
          <Node node={node} />
        </div>
      ) : (
        <pre class="text" tabIndex={0}>
          {node ? indented(node) : text}
        </pre>
      )}
      {payload.of !== undefined && (
        <p class="muted small">
          The first {count(text.length)} of {count(payload.of)} characters.
        </p>
      )}
    </div>
  );
}

/** So many members are drawn; more by a click. */
const MOST_MEMBERS = 100;

function Node({ node, name, depth = 0 }: { node: JsonNode; name?: string; depth?: number }) {
  const [most, setMost] = useState(MOST_MEMBERS);
  const label = name !== undefined && <span class="name">{name}: </span>;
  if (node.kind !== 'object' && node.kind !== 'array') {
    return (
      <>
        {label}
        <span class={`${node.kind}-value`}>{node.text}</span>
      </>
    );
  }
  const members: readonly (readonly [string, JsonNode])[] =
    node.kind === 'object' ? node.entries : node.items.map((item, n) => [String(n), item] as const);
  const size = node.kind === 'object' ? `{${count(members.length)}}` : `[${count(members.length)}]`;
  return (
    <details open={depth < 2}>
      <summary>
        {label}
        <span class="muted">{size}</span>
      </summary>
      <ul>
        {members.slice(0, most).map(([key, value], n) => (
          <li key={n}>
            <Node node={value} name={key} depth={depth + 1} />
          </li>
        ))}
        {members.length > most && (
          <li>
            <button type="button" class="button slim" onClick={() => setMost(most * 10)}>
              {count(members.length - most)} more
            </button>
          </li>
        )}
      </ul>
    </details>
  );
}
