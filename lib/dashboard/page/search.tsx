import { useEffect, useMemo, useState } from 'preact/hooks';
import { JUMPS, KEYS, openPanel } from './keyboard.js';
import { queues } from './live.js';
import { Dialog } from './parts/dialog.js';
import { go, queueInView } from './route.js';
import { read } from './server.js';

interface Hit {
  readonly key: string;
  readonly text: string;
  readonly kind: string;
  readonly open: () => void;
}

const MOST_HITS = 12;
const TYPING_MS = 200;

const close = () => (openPanel.value = undefined);

/** Finds queues and screens by a part of their name, and jobs by their whole id. */
export function Search() {
  const [text, setText] = useState('');
  const [chosen, choose] = useState(0);
  const found = useJobs(text.trim());
  const hits = useMemo(() => [...found.hits, ...byName(text.trim())].slice(0, MOST_HITS), [text, found.hits]);
  const at = Math.min(chosen, hits.length - 1);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') choose(Math.min(at + 1, hits.length - 1));
    else if (event.key === 'ArrowUp') choose(Math.max(at - 1, 0));
    else if (event.key === 'Enter') hits[at]?.open();
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={<span class="unseen">Search</span>} onClose={close} kind="high">
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-expanded={hits.length > 0}
          aria-controls="hits"
          aria-activedescendant={hits[at] && `hit-${at}`}
          aria-label="A queue, a screen, or the id of a job"
          placeholder="A queue, a screen, or the id of a job"
          autoComplete="off"
          spellcheck={false}
          autofocus
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            choose(0);
          }}
          onKeyDown={onKeyDown}
        />
        {hits.length > 0 && <Hits hits={hits} at={at} choose={choose} />}
        {hits.length === 0 && (
          <p class="empty" role="status">
            {found.isLooking ? 'Looking for a job with this id…' : 'Nothing has this name, and no job has this id.'}
          </p>
        )}
      </div>
    </Dialog>
  );
}

function Hits({ hits, at, choose }: { hits: readonly Hit[]; at: number; choose: (n: number) => void }) {
  return (
    <ul id="hits" role="listbox" aria-label="What was found">
      {hits.map(({ key, text: name, kind, open }, n) => (
        <li
          key={key}
          id={`hit-${n}`}
          role="option"
          aria-selected={n === at}
          onClick={open}
          onMouseMove={() => choose(n)}
        >
          <span>{name}</span>
          <small>{kind}</small>
        </li>
      ))}
    </ul>
  );
}

function byName(text: string): Hit[] {
  const has = (name: string) => name.toLowerCase().includes(text.toLowerCase());
  const opening = (open: () => void) => () => {
    close();
    open();
  };
  const screens = JUMPS.filter(([, , name]) => has(name)).map(([key, screen, name]) => ({
    key: `screen ${screen}`,
    text: name,
    kind: `g ${key}`,
    open: opening(() => go(screen, { queue: queueInView.peek() })),
  }));
  const ofQueues = queues.value
    .filter(({ queue }) => has(queue))
    .map(({ queue }) => ({
      key: `queue ${queue}`,
      text: queue,
      kind: 'queue',
      open: opening(() => go('timeline', { queue })),
    }));
  return text === '' ? screens : [...ofQueues, ...screens];
}

function useJobs(id: string): { hits: readonly Hit[]; isLooking: boolean } {
  const [found, setFound] = useState<{ id: string; hits: readonly Hit[] }>({ id: '', hits: [] });
  useEffect(() => {
    if (id === '') return;
    const question = new AbortController();
    const timer = setTimeout(async () => {
      const hits = await jobsCalled(id, question.signal);
      if (!question.signal.aborted) setFound({ id, hits });
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      question.abort();
    };
  }, [id]);
  const isOfThis = found.id === id;
  return { hits: isOfThis ? found.hits : [], isLooking: id !== '' && !isOfThis };
}

async function jobsCalled(id: string, signal: AbortSignal): Promise<Hit[]> {
  const answer = await read('find', { id }, { signal }).catch(() => undefined);
  const found = answer?.fresh?.jobs ?? [];
  const inView = queueInView.peek();
  const inOrder = [...found].sort((a, b) => Number(b.queue === inView) - Number(a.queue === inView));
  return inOrder.map(({ queue, state }) => {
    const open = () => {
      close();
      go('job', { queue, id });
    };
    return { key: `job ${queue} ${id}`, text: id, kind: `${state} job of ${queue}`, open };
  });
}

export function Help() {
  return (
    <Dialog title="Keys" onClose={close}>
      <div class="body">
        <dl class="facts">
          {KEYS.map(([keys, meaning]) => (
            <HelpLine key={keys} keys={keys} meaning={meaning} />
          ))}
        </dl>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}

function HelpLine({ keys, meaning }: { keys: string; meaning: string }) {
  return (
    <>
      <dt>
        {keys.split(/ +/).map((key, n) => (
          <span key={key}>
            {n > 0 && ' '}
            <kbd>{key}</kbd>
          </span>
        ))}
      </dt>
      <dd>{meaning}</dd>
    </>
  );
}
