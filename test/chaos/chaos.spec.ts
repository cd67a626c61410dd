import { writeFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { reportOf } from './report.js';
import { DEFAULT_RUN, judge, runChaos } from './run.js';
import type { RunResult, RunSettings } from './run.js';

/** `npm run chaos` sets these; without them this is the run of one minute that `npm test` holds. */
const { CHAOS_SETTINGS, CHAOS_REPORT, CHAOS_HISTORY } = process.env;

const given = JSON.parse(CHAOS_SETTINGS ?? '{}') as Partial<RunSettings>;
const seed = given.seed ?? Math.floor(Math.random() * 1_000_000);
const settings: RunSettings = { ...DEFAULT_RUN, seed, durationMs: 60_000, limits: seed % 2 === 1, ...given };
/** Start, drain, and reading the history. */
const BESIDES_MS = 120_000 + settings.durationMs / 5;

describe('Under faults of many kinds', () => {
  it(
    'nothing is lost, early, run without a cause or left behind',
    async () => {
      process.stderr.write(`chaos: ${settings.durationMs / 1_000} s, seed ${settings.seed}\n`);
      const result: RunResult = CHAOS_HISTORY
        ? { ...(await judge(CHAOS_HISTORY, settings.leaseMs)), kept: undefined }
        : await runChaos(settings);
      const { violations, kept } = result;
      const report = reportOf(result, settings);
      process.stderr.write(`${report}\n`);
      if (CHAOS_REPORT) writeFileSync(CHAOS_REPORT, report);
      const worst = violations.slice(0, 20).map(({ rule, id = '', what }) => `${rule} ${id}: ${what}`);
      expect({ seed: settings.seed, kept, worst }).toEqual({ seed: settings.seed, kept: undefined, worst: [] });
    },
    settings.durationMs + BESIDES_MS,
  );
});
