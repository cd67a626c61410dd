import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const RUNTIME = ['job', 'producer', 'handlers', 'worker', 'consumer', 'shards', 'redis', 'lua'];
const READ_SIDE = [
  'inspection',
  'health',
  'terminus',
  'events',
  'metrics',
  'otel-metrics',
  'tracing',
  'history',
  'tally',
  'dashboard',
  'bull-board',
  'testing',
  'cli',
];
/** Folders that may be deleted: nothing but themselves imports them. */
const OBSERVERS = ['events', 'metrics', 'otel-metrics', 'tracing', 'history', 'dashboard', 'bull-board'];

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/^(?:import|export) (type )?[^;]*?from '([^']+)'/gms)].map(([, type, target]) => ({
    from: relative('lib', file),
    to: target!.startsWith('.') ? normalize(join(dirname(relative('lib', file)), target!)) : target!,
    typeOnly: type !== undefined,
  }));
}

const every = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .flatMap((name) => importsOf(join('lib', name)));
/** Built for browsers, with all that it imports in it. */
const PAGE = 'dashboard/page/';
const all = every.filter(({ from }) => !from.startsWith(PAGE));
const folderOf = (path: string) => path.split('/')[0]!;

/** Bundled into one file, which no application loads. */
const PROGRAM = 'cli';

/** What an operator asks for, now and then. */
const OPERATOR_WORK = [
  'shards/resharding.js',
  'inspection/job-mover.js',
  'inspection/queue-remover.js',
  'inspection/bulk-walk.js',
];

describe('imports', () => {
  it('never lead from the runtime to the read side', () => {
    const wrong = all.filter(({ from, to }) => RUNTIME.includes(folderOf(from)) && READ_SIDE.includes(folderOf(to)));
    expect(wrong).toEqual([]);
  });

  it('lead from an instance to the read side only where it is put together', () => {
    const wrong = all.filter(({ from, to, typeOnly }) => {
      return folderOf(from) === 'instance' && READ_SIDE.includes(folderOf(to)) && !typeOnly;
    });
    expect([...new Set(wrong.map(({ from }) => from))]).toEqual(['instance/start-instance.ts']);
  });

  it('lead from the page of the dashboard to the library by types only, and never from the library to the page', () => {
    const others = every.filter(({ from, to }) => from.startsWith(PAGE) && to.endsWith('.js') && !to.startsWith(PAGE));
    expect([...new Set(others.map(({ to }) => to))]).toEqual(['dashboard/api.js']);
    expect(others.filter(({ typeOnly }) => !typeOnly)).toEqual([]);
    expect(all.filter(({ to }) => to.startsWith(PAGE))).toEqual([]);
  });

  it('lead to operator work by types only: it is loaded by the call that asks for it', () => {
    const targets = all.map(({ from }) => from.replace(/\.ts$/, '.js'));
    expect(OPERATOR_WORK.filter((file) => !targets.includes(file))).toEqual([]);
    expect(all.filter(({ to, typeOnly }) => !typeOnly && OPERATOR_WORK.includes(to))).toEqual([]);
  });

  it('lead to the store in memory by types only: an application on Redis never loads it', () => {
    const wrong = all.filter(
      ({ from, to, typeOnly }) =>
        !typeOnly && folderOf(to) === 'memory' && !['memory', 'testing'].includes(folderOf(from)),
    );
    expect(wrong).toEqual([]);
  });

  it('lead from the store in memory to nothing but itself and Node', () => {
    const wrong = all.filter(({ from, to }) => folderOf(from) === 'memory' && folderOf(to) !== 'memory');
    expect(wrong.filter(({ to }) => !to.startsWith('node:'))).toEqual([]);
  });

  it('lead to the tally of events from the metrics and the history only', () => {
    const others = all.filter(({ from, to }) => folderOf(to) === 'tally' && folderOf(from) !== 'tally');
    expect([...new Set(others.map(({ from }) => folderOf(from)))].toSorted()).toEqual([
      'history',
      'metrics',
      'otel-metrics',
    ]);
  });

  it('lead into what observes from nowhere but itself: a queue works without it', () => {
    const wrong = all.filter(
      ({ from, to }) => OBSERVERS.includes(folderOf(to)) && ![folderOf(to), PROGRAM].includes(folderOf(from)),
    );
    // The dashboard shows what the history has kept.
    expect(wrong.filter(({ from, to }) => !(folderOf(from) === 'dashboard' && folderOf(to) === 'history'))).toEqual([]);
  });

  it('need prom-client and OpenTelemetry in their own subpaths only', () => {
    const homes: Record<string, string[]> = {
      'prom-client': ['metrics'],
      '@opentelemetry/api': ['otel-metrics', 'tracing'],
    };
    const wrong = all.filter(({ from, to }) => to in homes && !homes[to]!.includes(folderOf(from)));
    expect(wrong).toEqual([]);
  });

  it('need terminus in its own subpath only', () => {
    const wrong = all.filter(({ from, to }) => to === '@nestjs/terminus' && folderOf(from) !== 'terminus');
    expect(wrong).toEqual([]);
  });

  it('need @nestjs/microservices in the subpath of the relay only, which nothing else imports', () => {
    const wrong = all.filter(({ from, to }) => to === '@nestjs/microservices' && folderOf(from) !== 'relay');
    const into = all.filter(({ from, to }) => folderOf(to) === 'relay' && folderOf(from) !== 'relay');
    expect([...wrong, ...into]).toEqual([]);
  });

  it('need devalue in its own subpath only', () => {
    const wrong = all.filter(({ from, to }) => to === 'devalue' && folderOf(from) !== 'devalue');
    expect(wrong).toEqual([]);
  });

  it('lead into the command line from nowhere: it is a program of its own, with its parser of arguments in it', () => {
    expect(all.filter(({ from, to }) => folderOf(to) === PROGRAM && folderOf(from) !== PROGRAM)).toEqual([]);
    expect(all.filter(({ from, to }) => to === 'commander' && folderOf(from) !== PROGRAM)).toEqual([]);
  });

  it('name only packages that are dependencies or peers, or belong to Node', () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      dependencies: Record<string, string>;
      peerDependencies: Record<string, string>;
    };
    const packages = new Set(all.map(({ to }) => to).filter((to) => !to.endsWith('.js') && !to.startsWith('node:')));
    packages.delete('commander');
    expect([...packages].filter((name) => !(name in dependencies || name in peerDependencies))).toEqual([]);
  });

  it('lead from the pure job folder to errors, defaults, the clock and itself only', () => {
    const others = ['defaults.js', 'delay-queue.errors.js', 'time-and-randomness.js'];
    const values = all.filter(({ from, typeOnly }) => folderOf(from) === 'job' && !typeOnly);
    expect(
      values.filter(({ to }) => folderOf(to) !== 'job' && !others.includes(to) && !to.startsWith('node:')),
    ).toEqual([]);
  });
});
