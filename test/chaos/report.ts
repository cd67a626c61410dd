import type { RunResult, RunSettings } from './run.js';
import { FAULTS } from './plan.js';
import type { FaultKind } from './plan.js';

/** A fragment of Markdown for docs/reliability.md. */
export function reportOf(result: RunResult, settings: RunSettings): string {
  const { jobs, occurrences, starts, deadLetters, secondRuns, faults, lateness } = result.figures;
  const all = Object.values(faults);
  const sum = (field: 'planned' | 'tookEffect') => all.reduce((total, fault) => total + fault[field], 0);
  const rows = Object.entries(faults).map(
    ([kind, { planned, tookEffect }]) => `| ${FAULTS[kind as FaultKind] ?? kind} | ${planned} | ${tookEffect} |`,
  );
  const causes = Object.entries(secondRuns)
    .sort(([, a], [, b]) => b - a)
    .map(([cause, count]) => `| ${cause} | ${count} |`);
  return `\`npm run chaos -- --minutes ${+(settings.durationMs / 60_000).toFixed(2)} --seed ${settings.seed}\`
(${settings.workers} workers, ${settings.rate} calls/s, lease ${settings.leaseMs} ms, appendfsync ${settings.appendfsync}, ${settings.limits ? 'groups and limits, ' : ''}Node ${process.versions.node})

Jobs: ${jobs.asked} asked for, ${jobs.acknowledged} acknowledged, ${jobs.refused} refused, ${jobs.doubtful} in doubt; ${starts} runs, ${deadLetters} dead letters.
Occurrences of schedules: ${occurrences.times}; ${occurrences.ran} ran, ${occurrences.missed} missed, ${occurrences.overlapped} overlapped.
Violations: ${result.violations.length}.
Lateness of first runs: p50 ${lateness.p50} ms, p99 ${lateness.p99} ms, worst ${lateness.worst} ms; with no fault active (${lateness.inPeace} jobs) worst ${lateness.worstInPeace} ms.

| fault | planned | took effect |
| --- | --- | --- |
${rows.join('\n')}
| all | ${sum('planned')} | ${sum('tookEffect')} |

| why jobs ran again | runs |
| --- | --- |
${causes.join('\n')}
`;
}
