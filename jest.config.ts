import type { Config } from 'jest'; // a type only: ts-node loads this file as CommonJS on Node 20

const WITHOUT_REDIS = ['unit', 'handlers', 'contract', 'simulation'];
/** Of test/fuzz only what lies in the folder `redis` needs one. */
const FUZZ_WITHOUT_REDIS = 'fuzz/*.spec.ts';
/** What only a server has: OOM, script flags, MONITOR. */
const OF_SERVERS_ONLY = ['lua/full-memory', 'lua/legacy', 'lua/bounded'];
/** Specs that run a second time, against the store of `memory://`: all scripts, and the library around them. */
const IN_MEMORY_TOO = [
  'lua',
  'model/sequences-1',
  'model/schedules',
  'integration/dashboard/{acts,mounting,reads,schedules,security}',
  'model/grouped-1',
  'integration/features/{bulk,consumer,fleet-events,limits.shards,middleware,registry,history,timeline,typed-queues}',
  'integration/guarantees/{due-order,one-owner,unknown-stays-safe}',
  'integration/handlers/{job,not-run,outcomes,retries}',
  'integration/health/terminus',
  'integration/module/{inspector,inspector.dead-letters,producer.duplicates}',
];
/**
 * Node 20 never frees an ES module of vm, so that each file leaves 3 to 25 MB in its worker: 2 GB in the end. A worker that holds more
 * than this is replaced, a dozen times a run.
 */
const WORKER_HEAP = 280 * 1024 ** 2;

const shared = {
  rootDir: '.',
  testEnvironment: '<rootDir>/test/leak-environment.mjs',
  testEnvironmentOptions: { replacedFrom: WORKER_HEAP },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2023',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        module: { type: 'es6' },
      },
    ],
  },
} satisfies Config;

const config: Config = {
  // Two more than the cores it is made for: much of the time is waiting for processes and leases.
  maxWorkers: 4,
  workerIdleMemoryLimit: WORKER_HEAP,
  // Longer than `eventually()` waits, so that what fails is an assertion, which says more than a timeout.
  testTimeout: 120_000,
  reporters: ['default', '<rootDir>/test/features-reporter.mjs'],
  coverageProvider: 'v8',
  collectCoverageFrom: ['lib/**/*.ts', '!lib/lua/scripts*.generated.ts'],
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: [...WITHOUT_REDIS.map((folder) => `${folder}/**/*.spec.ts`), FUZZ_WITHOUT_REDIS].map(
        (files) => `<rootDir>/test/${files}`,
      ),
    },
    {
      ...shared,
      displayName: 'redis',
      testMatch: ['<rootDir>/test/**/*.spec.ts', '<rootDir>/sample-app/test/**/*{.e2e-spec,.spec}.ts'],
      testPathIgnorePatterns: [
        '/node_modules/',
        ...[...WITHOUT_REDIS, 'servers'].map((folder) => `<rootDir>/test/${folder}/`),
        '<rootDir>/test/fuzz/[^/]+$',
        '<rootDir>/test/browser/(?!on-redis)',
      ],
      globalSetup: '<rootDir>/test/global-setup.ts',
      globalTeardown: '<rootDir>/test/global-teardown.ts',
    },
    {
      ...shared,
      displayName: 'browser',
      testMatch: ['<rootDir>/test/browser/**/*.spec.ts'],
      testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/browser/on-redis'],
    },
    {
      ...shared,
      displayName: 'memory',
      testMatch: IN_MEMORY_TOO.map((name) => `<rootDir>/test/${name}{.spec.ts,/**/*.spec.ts}`),
      testPathIgnorePatterns: ['/node_modules/', ...OF_SERVERS_ONLY.map((name) => `<rootDir>/test/${name}`)],
      setupFiles: ['<rootDir>/test/memory/in-memory.ts'],
    },
  ],
};

export default config;
