import type { QueueCounts } from '../inspection/queue-counts.js';
import type { Distribution } from './buckets.js';
import type { Reading } from './readings.js';
import type { DistributionName, QueueTally } from './tally.js';

/** One value, one for each word of the label, or none at the moment. */
export type Values = number | Readonly<Record<string, number>> | undefined;

/**
 * What a metric is, whoever exports it. The names are such that the translation of OpenTelemetry's names to those of
 * Prometheus, which collectors do, gives what `nestjs-delay-queue/metrics` calls them.
 */
export interface MetricDefinition {
  readonly name: string;
  /** Words in braces say what is counted, and are no part of a name. */
  readonly unit: 's' | 'By' | `{${string}}`;
  readonly help: string;
  /** What tells series of one queue apart. */
  readonly label?: 'outcome' | 'reason' | 'kind' | 'state';
}

export const COUNTERS: readonly (MetricDefinition & { read(tally: QueueTally<Distribution>): Values })[] = [
  {
    name: 'jobs_enqueued',
    unit: '{job}',
    help: 'Enqueues that Redis answered',
    label: 'outcome',
    read: ({ enqueued }) => enqueued,
  },
  { name: 'jobs_claimed', unit: '{run}', help: 'Jobs claimed to be run', read: ({ claimed }) => claimed },
  { name: 'jobs_completed', unit: '{job}', help: 'Jobs that are done', read: ({ completed }) => completed },
  {
    name: 'jobs_failed',
    unit: '{run}',
    help: 'Attempts used up by an error, a timeout or a discard',
    read: ({ failed }) => failed,
  },
  {
    name: 'jobs_retried',
    unit: '{run}',
    help: 'Failed attempts that are followed by another one',
    read: ({ retried }) => retried,
  },
  {
    name: 'jobs_snoozed',
    unit: '{run}',
    help: 'Runs that ended by asking for a later one',
    read: ({ snoozed }) => snoozed,
  },
  {
    name: 'jobs_expired',
    unit: '{job}',
    help: 'Jobs removed because they could not start in time',
    read: ({ expired }) => expired,
  },
  {
    name: 'jobs_dead_lettered',
    unit: '{job}',
    help: 'Jobs that became dead letters',
    label: 'reason',
    read: ({ deadLettered }) => deadLettered,
  },
  {
    name: 'occurrences_skipped',
    unit: '{occurrence}',
    help: 'Occurrences of schedules that did not run',
    label: 'reason',
    read: ({ skipped }) => skipped,
  },
  { name: 'leases_lost', unit: '{run}', help: 'Runs that lost their lease', read: ({ leasesLost }) => leasesLost },
];

/** A counter of instances, not of queues. */
export const OUTAGES: MetricDefinition = {
  name: 'redis.outages',
  unit: '{outage}',
  help: 'Times that Redis became unreachable or refused everything',
};

export const HISTOGRAMS: readonly (MetricDefinition & { readonly of: DistributionName })[] = [
  { of: 'lateness', name: 'job.lateness', unit: 's', help: 'From the due time to the claim' },
  { of: 'duration', name: 'job.duration', unit: 's', help: 'From the claim to the outcome' },
  { of: 'step', name: 'step.duration', unit: 's', help: 'Round trips of workers to Redis', label: 'kind' },
];

export const GAUGES_OF_QUEUES: readonly (MetricDefinition & { read(counts: QueueCounts): Values })[] = [
  {
    name: 'jobs',
    unit: '{job}',
    help: 'Jobs in a queue',
    label: 'state',
    read: ({ delayed, due, running, dead }) => ({ delayed, due, running, dead }),
  },
  {
    name: 'lag',
    unit: 's',
    help: 'Age of the oldest due job that nobody has claimed',
    read: ({ lagMs }) => lagMs / 1_000,
  },
  { name: 'schedules', unit: '{schedule}', help: 'Schedules of a queue', read: ({ schedules }) => schedules },
  {
    name: 'schedules_late',
    unit: 's',
    help: 'Since when a schedule needs more occurrences',
    read: ({ schedulesLateMs }) => schedulesLateMs / 1_000,
  },
  { name: 'paused', unit: '{queue}', help: '1 while a queue is paused', read: ({ paused }) => Number(paused) },
  {
    name: 'limited',
    unit: '{queue}',
    help: '1 while a queue is at a limit of its own',
    read: ({ limited }) => (limited === undefined ? undefined : Number(limited)),
  },
  {
    name: 'groups',
    unit: '{group}',
    help: 'Groups of a queue that have jobs',
    label: 'state',
    read: ({ groups }) => groups && { inLine: groups.inLine, limited: groups.limited, total: groups.total },
  },
];

export const GAUGES_OF_SERVERS: readonly (MetricDefinition & { read(reading: Reading): Values })[] = [
  { name: 'redis.up', unit: '{server}', help: '1 when Redis answered this scrape', read: ({ up }) => Number(up) },
  { name: 'redis.memory.used', unit: 'By', help: 'used_memory of Redis', read: ({ memory }) => memory?.used },
  {
    name: 'redis.memory.max',
    unit: 'By',
    help: 'maxmemory of Redis; 0 is no limit',
    read: ({ memory }) => memory?.max,
  },
];

/** A gauge of this process, which asks Redis nothing. */
export const STEP_AGE: MetricDefinition = {
  name: 'last_step_age',
  unit: 's',
  help: 'Since the claim loop of a queue was last answered',
};
