// What the benchmark may claim: a figure that is missing decides nothing, and nothing of it is published with the package.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { goalText, isMet } from '../../bench/goals.mjs';
import { isBusy, machineTicks, processTicks, shares } from '../../bench/measure/machine.mjs';
import { isOf } from '../../bench/measure/servers.mjs';
import { plan } from '../../bench/plan/index.mjs';
import { costTable, withCostTable } from '../../bench/report/cost.mjs';
import { figuresPicture } from '../../bench/report/figures.mjs';
import { plainTable } from '../../bench/report/table.mjs';

describe('a goal of the benchmark', () => {
  const faster = { timesBullmq: 5, timesBee: 3 };

  it('is met when every part of it is', () => {
    expect(isMet(faster, { ours: 100, bullmq: 20, beeQueue: 30 })).toBe(true);
    expect(isMet(faster, { ours: 100, bullmq: 20, beeQueue: 34 })).toBe(false);
    expect(isMet({ most: 5, shareOfBullmq: 0.5 }, { ours: 5, bullmq: 10 })).toBe(true);
    expect(isMet({ most: 5, shareOfBullmq: 0.5 }, { ours: 5, bullmq: 9 })).toBe(false);
    expect(isMet({ least: 50_000, ofBare: 0.7 }, { ours: 70_000, bare: 100_000 })).toBe(true);
  });

  it('is neither met nor missed while a figure is missing that could decide it', () => {
    expect(isMet(faster, { ours: 100, bullmq: 20, beeQueue: null })).toBeNull();
    expect(isMet(faster, { ours: null, bullmq: 20, beeQueue: 30 })).toBeNull();
    expect(isMet(faster, { ours: 100, bullmq: 21, beeQueue: null })).toBe(false);
    expect(isMet(undefined, { ours: 1 })).toBeNull();
  });

  it('is written as text', () => {
    expect(goalText({ timesBullmq: 5, ofBare: 0.7 })).toBe('≥ 5 x BullMQ, ≥ 70 % of bare');
    expect(goalText()).toBeNull();
  });
});

it('the bare worker finds what it takes from inside the built package', async () => {
  const loads = ['--input-type=module', '--eval', "await import('./bench/bare.mjs')"];
  await expect(promisify(execFile)(process.execPath, loads)).resolves.toMatchObject({ stderr: '' });
});

it('the benchmark and its peers stay out of the package and of its tree', () => {
  const own = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, Record<string, string>>;
  const { dependencies: peers } = JSON.parse(readFileSync('bench/package.json', 'utf8')) as typeof own;
  expect(own.files).not.toContain('bench');
  const known = Object.keys({ ...own.dependencies, ...own.devDependencies, ...own.peerDependencies });
  expect(Object.keys(peers!).filter((name) => name !== 'ioredis' && known.includes(name))).toEqual([]);
});

describe('a busy machine', () => {
  /** As /proc/stat has it: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice. */
  const ticks = (user: number, idle: number, softIrq: number, stolen: number, own: number) => ({
    ...machineTicks(`cpu  ${user} 0 0 ${idle} 0 0 ${softIrq} ${stolen} 7 7\ncpu0 1 2 3 4 5 6 7 8 9 9\n`),
    own,
  });
  const before = ticks(100, 100, 0, 0, 90);

  it('is one on which other programs work, or whose host takes time away', () => {
    expect(shares(before, ticks(200, 200, 100, 0, 180))).toEqual({ foreign: 10 / 300, stolen: 0 });
    expect(isBusy({ foreign: 10 / 300, stolen: 0 })).toBe(false);
    expect(isBusy(shares(before, ticks(200, 200, 0, 0, 160)))).toBe(true);
    expect(isBusy(shares(before, ticks(190, 190, 0, 20, 180)))).toBe(true);
  });

  it('is not told where nothing is known of it', () => {
    expect(isBusy(shares(undefined, undefined))).toBe(false);
    expect(isBusy(shares(before, before))).toBe(false);
  });

  it('does not count the processes that measure, nor their children that have ended', () => {
    expect(processTicks('12 (a (name) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1')).toBe(127);
  });
});

describe('what a Redis must be for so many jobs a day', () => {
  const measured = [
    { name: 'enqueue, 100 callers in flight: CPU of Redis per job', ours: 6 },
    { name: 'Redis CPU per job in the drain, concurrency 100', ours: 8 },
    { name: 'memory per job at 100,000 pending', ours: 300 },
    { name: 'memory per job at 10,000,000 pending', ours: 320 },
  ];

  it('is computed from the measured bytes and CPU', () => {
    const lines = costTable({ scenarios: measured }).split('\n');
    // 1,000,000 jobs that wait for a day: 300 MB, in a server of at least the double. 14 us each of 86,400 s.
    expect(lines[4]).toBe(
      '| 1,000,000 | 0.25 GB (13 MB) | 1 GB (300 MB) | 8 GB (2.1 GB) | 32 GB (9.6 GB) | < 0.1 % | 0.16 % |',
    );
    expect(lines[6]).toMatch(/\| shards \(960 GB\) \| 1\.6 % \| 16 % \|$/);
  });

  it('has one column more where jobs that come one by one were measured', () => {
    const alone = { name: 'Redis CPU per job with 20 processes at 200 jobs/s', ours: 200 };
    expect(costTable({ scenarios: [...measured, alone] }).split('\n')[5]).toMatch(/\| 0\.16 % \| 1\.6 % \| 2\.3 % \|$/);
  });

  it('stands in the docs as the last whole run has it', () => {
    const page = readFileSync('docs/performance.md', 'utf8');
    expect(page).toBe(withCostTable(page, JSON.parse(readFileSync('bench/results/latest.json', 'utf8')) as never));
    expect(() => withCostTable('no marks', { scenarios: measured })).toThrow('lacks the marks');
  });
});

describe('the rows by server', () => {
  it('have a column for each server, and none for one that is not on this machine', () => {
    const row = { name: 'drain', unit: 'jobs/s', ours: null, 'redis-7.0': 90, spread: { 'redis-7.0': [80, 95] } };
    const [head, line] = plainTable([{ ...row, notes: { 'redis-8.0': 'skipped: no redis-8.0' } }])
      .split('\n')
      .map((text) => text.trim().split(/ {2,}/));
    expect(head).toEqual(['scenario', 'unit', 'Redis 7.0', 'Redis 8.0', 'Valkey 8.0']);
    expect(line).toEqual(['drain', 'jobs/s', '90 (80..95)', '-', '-']);
  });

  it('know a server by what it says of itself', () => {
    expect(isOf('redis-7.0', 'Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64')).toBe(true);
    expect(isOf('redis-8.0', 'Redis server v=7.0.15 sha=00000000:0')).toBe(false);
    expect(isOf('valkey-8.0', 'Valkey server v=8.0.1 sha=00000000:0')).toBe(true);
    expect(isOf('redis-8.0', 'Valkey server v=8.0.1 sha=00000000:0')).toBe(false);
  });
});

it('no two scenarios, and no two rows, of the benchmark have one name', () => {
  const scenarios = plan({});
  for (const names of [
    scenarios.map(({ name }) => name),
    scenarios.flatMap(({ rows }) => rows.map(({ name }) => name)),
  ]) {
    expect(names.filter((name, n) => names.indexOf(name) !== n)).toEqual([]);
  }
});

it('the picture in the README shows the figures of the last whole run', () => {
  const { scenarios } = JSON.parse(readFileSync('bench/results/latest.json', 'utf8')) as { scenarios: object[] };
  expect(readFileSync('docs/images/figures.svg', 'utf8')).toBe(figuresPicture(scenarios));
});
