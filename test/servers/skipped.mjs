// Specs that show nothing about TLS or a restricted user, or cannot run with them. All others run.

/** Each starts a server of its own, over plain TCP and without users: running them again would show nothing. */
export const SERVER_OF_THEIR_OWN = [
  'sample-app/test/health.e2e-spec.ts',
  'test/integration/faults/boot-without-redis.spec.ts',
  'test/integration/faults/busy-server.spec.ts',
  'test/integration/faults/clock-jumps.spec.ts',
  'test/integration/faults/full-memory.spec.ts',
  'test/integration/faults/hanging-claim-loop.spec.ts',
  'test/integration/faults/limits-redis-killed.spec.ts',
  'test/integration/faults/read-only.spec.ts',
  'test/integration/faults/redis-gone.spec.ts',
  'test/integration/faults/redis-restart.spec.ts',
  'test/integration/faults/script-flush.spec.ts',
  'test/integration/features/durability.cluster.spec.ts',
  'test/integration/features/durability.spec.ts',
  'test/integration/features/shards-cluster.spec.ts',
  'test/integration/guarantees/bounded.spec.ts',
  'test/integration/health/health.spec.ts',
  'test/integration/health/redis-trouble.spec.ts',
  'test/integration/faults/enqueue-in-doubt.spec.ts',
  'test/integration/features/consumer.pull.spec.ts',
  'test/integration/faults/refusing-server.spec.ts',
  'test/integration/quarantine/other-queues.spec.ts',
  'test/integration/module/database.spec.ts',
  'test/integration/module/for-root.spec.ts',
  'test/integration/module/instances.spec.ts',
  'test/integration/module/lifecycle.spec.ts',
  'test/integration/module/producer.bulk.spec.ts',
  'test/integration/module/producer.errors.spec.ts',
  'test/integration/module/producer.spec.ts',
  'test/integration/module/refused-connections.spec.ts',
  'test/integration/module/startup-checks.spec.ts',
  'test/lua/bounded.spec.ts',
  'test/lua/full-memory.spec.ts',
  'test/lua/legacy.spec.ts',
  'test/lua/wake-ups.spec.ts',
  'test/integration/start-command.spec.ts', // `npm start` without REDIS_URL
  'test/integration/npm-start.spec.ts',
];

/** A proxy between the two looks for a script's hash in what passes, which TLS hides. */
export const READ_ALONG = [
  'test/integration/closed-at-once.spec.ts',
  'test/integration/faults/connection-lost.spec.ts',
  'test/integration/faults/lost-replies.spec.ts',
  'test/integration/features/move.spec.ts',
  'test/integration/guarantees/at-least-once.spec.ts',
  'test/integration/guarantees/atomic-publish.spec.ts',
  'test/integration/guarantees/strict-input.spec.ts',
  'test/integration/module/inspector.remove-killed.spec.ts',
  'test/integration/module/producer.doubt.spec.ts',
];

/** The test kit moves times by commands that an application may not use. */
export const TEST_KIT = [
  'test/integration/features/testing.faults.spec.ts',
  'test/integration/features/testing.limits.spec.ts',
];

/** Needs more than an application does: docs/command-line.md says what. */
export const MORE_RIGHTS = ['test/integration/command-line/import-bullmq.spec.ts'];

/** The store in memory is held to the words of Redis 7.0: 8.0 prints doubles otherwise, and refuses bounds in hexadecimal. */
export const HELD_TO_REDIS_7 = ['test/memory/'];

/** Each has a client of its own for one server, or starts an application that knows no other. */
export const ONE_SERVER = [
  'test/integration/command-line/completion.spec.ts',
  'test/integration/command-line/import-bullmq.spec.ts', // whose keys lie in many slots
  'test/integration/command-line/usage.spec.ts',
  'sample-app/test/metrics.e2e-spec.ts',
  'sample-app/test/payments.e2e-spec.ts',
  'test/integration/leases/outage.spec.ts',
  'test/integration/faults/interrupted-resharding.spec.ts',
];

/** Tests of other specs of which the same is true, by a part of their names; of the first that nodes hear of each other's news at once. */
export const ONE_SERVER_TESTS = [
  'go round: with one slot',
  'killed at any step',
  'while Redis is silent',
  'however often connecting fails',
  'none from working after an outage',
  'a worker that sleeps meanwhile writes both',
];
