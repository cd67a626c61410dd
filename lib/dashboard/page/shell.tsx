import { useLayoutEffect, useRef } from 'preact/hooks';
import { count } from './format.js';
import { openPanel } from './keyboard.js';
import { me, queues, state } from './live.js';
import { Badge } from './parts/basic.js';
import { Brand, Icon } from './parts/icons.js';
import type { IconName } from './parts/icons.js';
import { go, linkTo, queueInView, route } from './route.js';
import type { Screen } from './route.js';
import { isPaused, theme, zone } from './settings.js';
import type { Theme } from './settings.js';
import { total } from './sums.js';

export const TITLES: Readonly<Record<Screen, string>> = {
  queues: 'Queues',
  timeline: 'Timeline',
  jobs: 'Jobs',
  job: 'Job',
  dead: 'Dead letters',
  lateness: 'Lateness',
  processes: 'Processes',
  schedules: 'Schedules',
  server: 'Server',
};

const OF_JOBS: readonly (Screen & IconName)[] = ['queues', 'timeline', 'jobs', 'dead', 'lateness'];
const OF_THE_SYSTEM: readonly (Screen & IconName)[] = ['schedules', 'processes', 'server'];

export function Side() {
  const known = me.value;
  return (
    <aside class="side">
      <a class="brand" href={linkTo('queues')}>
        <Brand />
        Delay queue
      </a>
      <Instances />
      <nav class="nav" aria-label="Screens">
        <ul>
          {OF_JOBS.map((screen) => (
            <SideLink key={screen} screen={screen} />
          ))}
        </ul>
        <ul>
          {OF_THE_SYSTEM.map((screen) => (
            <SideLink key={screen} screen={screen} />
          ))}
        </ul>
      </nav>
      <div class="side-foot">
        {known?.environment && (
          <span>
            <Badge tone={/^prod/i.test(known.environment) ? 'bad' : 'accent'}>{known.environment}</Badge>
          </span>
        )}
        {known?.level === 'read' && (
          <span>
            <Badge tone="accent" title="You may look, and change nothing.">
              read only
            </Badge>
          </span>
        )}
        {known?.user && <span class="wrap">{known.user}</span>}
        {known && <span class="version">version {known.version}</span>}
      </div>
    </aside>
  );
}

function SideLink({ screen }: { screen: Screen & IconName }) {
  const shown = route.value.screen === 'job' ? 'jobs' : route.value.screen;
  const dead = screen === 'dead' ? total(queues.value, (queue) => queue.dead) : 0;
  const isShown = screen === shown;
  const link = useRef<HTMLAnchorElement>(null);
  useLayoutEffect(() => {
    if (isShown) bringIntoRow(link.current!);
  }, [isShown]);
  return (
    <li>
      <a ref={link} href={linkTo(screen, { queue: queueInView.value })} aria-current={isShown ? 'page' : undefined}>
        <Icon name={screen} />
        {TITLES[screen]}
        {dead > 0 && <span class="tally bad">{count(dead)}</span>}
      </a>
    </li>
  );
}

/** On a narrow window the links are a row that is wider than it. The page itself is not moved, as scrollIntoView() would. */
function bringIntoRow(link: HTMLElement): void {
  const row = link.closest('nav')!;
  const [own, all] = [link.getBoundingClientRect(), row.getBoundingClientRect()];
  row.scrollLeft += own.left + own.width / 2 - all.left - all.width / 2;
}

function Instances() {
  const names = me.value?.instances ?? [];
  if (names.length < 2) return null;
  return (
    <label class="field">
      <span>Instance</span>
      <select
        value={route.value.params['instance'] ?? names[0]}
        onChange={({ currentTarget }) => go('queues', { instance: currentTarget.value })}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function Tools() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  const isStill = isPaused.value;
  return (
    <div class="tools">
      <button type="button" class="button slim search" onClick={() => (openPanel.value = 'search')}>
        <Icon name="search" />
        Search <kbd class="on-wide">/</kbd>
      </button>
      <button
        type="button"
        class="button slim"
        aria-pressed={isStill}
        title={isStill ? 'Read the queues again every two seconds (p)' : 'Stop the refreshing (p)'}
        onClick={() => (isPaused.value = !isStill)}
      >
        <Icon name={isStill ? 'play' : 'pause'} />
        {isStill ? 'Paused' : 'Live'}
      </button>
      <button
        type="button"
        class="button plain slim"
        title="Times of this computer's zone, or UTC"
        onClick={() => (zone.value = zone.value === 'utc' ? 'local' : 'utc')}
      >
        {zone.value === 'utc' ? 'UTC' : 'Local'}
      </button>
      <button
        type="button"
        class="button plain slim"
        aria-label={`Colours: ${theme.value}. Change to ${next}`}
        title={`Colours: ${theme.value}`}
        onClick={() => (theme.value = next)}
      >
        <Icon name={theme.value} />
      </button>
      <button
        type="button"
        class="button plain slim"
        aria-label="Help: keys"
        title="Keys (?)"
        onClick={() => (openPanel.value = 'help')}
      >
        <Icon name="help" />
      </button>
    </div>
  );
}

/** Which queue a screen is about. `all` is offered where a screen can show the sum of all. */
export function QueuePicker({ all }: { all?: string }) {
  const names = queues.value.map(({ queue }) => queue);
  const shown = queueInView.value;
  const isUnknown = shown !== undefined && !names.includes(shown);
  return (
    <label class="row">
      <span class="unseen">Queue</span>
      <select
        value={shown ?? ''}
        onChange={({ currentTarget }) => {
          const { screen, params } = route.value;
          const kept = screen === 'timeline' || screen === 'lateness' ? { span: params['span'] } : {};
          go(screen, { ...kept, queue: currentTarget.value || undefined, state: params['state'] });
        }}
      >
        {all ? <option value="">{all}</option> : !shown && <option value="">Choose a queue</option>}
        {isUnknown && <option value={shown}>{shown}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      {isUnknown && state.value?.more === 0 && (
        <span class="warn small" role="status">
          No queue of this name was ever used.
        </span>
      )}
      {state.value && state.value.more > 0 && (
        <span class="muted small">{count(state.value.more)} more are not listed</span>
      )}
    </label>
  );
}
