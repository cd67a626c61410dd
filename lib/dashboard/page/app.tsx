import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { openPanel } from './keyboard.js';
import { ageOfState, me, problem, redisProblem, state } from './live.js';
import { duration } from './format.js';
import { Empty, Loading } from './parts/basic.js';
import { Toasts } from './parts/toasts.js';
import { queueInView, route } from './route.js';
import type { Screen } from './route.js';
import { isPaused } from './settings.js';
import { Side, Tools, TITLES } from './shell.js';
import { Help, Search } from './search.js';
import { DeadScreen } from './screens/dead.js';
import { JobScreen } from './screens/job.js';
import { JobsScreen } from './screens/jobs.js';
import { LatenessScreen } from './screens/lateness.js';
import { ProcessesScreen } from './screens/processes.js';
import { QueuesScreen } from './screens/queues.js';
import { SchedulesScreen } from './screens/schedules.js';
import { ServerScreen } from './screens/server.js';
import { TimelineScreen } from './screens/timeline.js';

const SCREENS: Readonly<Record<Screen, ComponentType>> = {
  queues: QueuesScreen,
  timeline: TimelineScreen,
  jobs: JobsScreen,
  job: JobScreen,
  dead: DeadScreen,
  lateness: LatenessScreen,
  processes: ProcessesScreen,
  schedules: SchedulesScreen,
  server: ServerScreen,
};

export function App() {
  const { screen } = route.value;
  const title = screen === 'job' ? (route.value.params['id'] ?? 'Job') : TITLES[screen];
  useEffect(() => {
    document.title = [title, queueInView.value, 'Delay queue'].filter(Boolean).join(' · ');
  });
  if (problem.value?.status === 401 || problem.value?.status === 403) return <Refused />;
  const Shown = SCREENS[screen];
  return (
    <div class="shell">
      <Side />
      <main class="main">
        <div class="column">
          <header class="top">
            <h1>{title}</h1>
            <Tools />
          </header>
          <Banner />
          {me.value && state.value ? <Shown key={screen} /> : !problem.value && <Loading />}
        </div>
      </main>
      {openPanel.value === 'search' && <Search />}
      {openPanel.value === 'help' && <Help />}
      <Toasts />
    </div>
  );
}

/** What is shown may be old: then it says how old, and why. */
function Banner() {
  const trouble = problem.value?.message ?? redisProblem.value;
  if (trouble) {
    return (
      <div class="banner bad" role="alert">
        <strong>{trouble}</strong>
        <span>
          <Age /> The page asks again every two seconds.
        </span>
      </div>
    );
  }
  if (!isPaused.value) return null;
  return (
    <div class="banner" role="status">
      <strong>Refreshing is paused.</strong>
      <span>
        <Age />
      </span>
    </div>
  );
}

function Age() {
  const age = ageOfState();
  return state.value && age !== undefined ? <>What you see is {duration(age)} old.</> : null;
}

function Refused() {
  return (
    <main class="main">
      <div class="card">
        <Empty title="You may not see this dashboard">
          <p>{problem.value?.message}</p>
        </Empty>
      </div>
    </main>
  );
}
