// docs/images/figures.svg, the picture in the README: the charts of the last whole run in one.
import { TITLES } from '../libraries/index.mjs';
import { stackedCharts } from './chart.mjs';

/** What is drawn of a run, and in which order. */
export const CHARTS = {
  throughput: 'Jobs per second (longer is better)',
  lateness: 'Lateness, p99 (shorter is better)',
  memory: 'Redis memory per pending job (shorter is better)',
};
const TITLE = 'Jobs per second, lateness and memory, beside BullMQ and bee-queue';

/** @param {{ chart?: string, ours: number | null }[]} scenarios of bench/results/latest.json */
export function figuresPicture(scenarios) {
  const charts = Object.entries(CHARTS).map(([name, title]) => ({ title, rows: rowsOf(name, scenarios) }));
  return stackedCharts(TITLE, charts, TITLES);
}

export function rowsOf(name, scenarios) {
  return scenarios.filter(({ chart, ours }) => chart === name && ours !== null);
}
