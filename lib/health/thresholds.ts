import { HEALTH_DEFAULTS } from '../defaults.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseDuration, shown } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';

/** The limits beyond which a queue is not healthy. */
export interface HealthThresholds {
  /** Name of the `forRoot()` instance; read by the terminus indicator. */
  instance?: string;
  /**
   * Age of the oldest due job that no worker has claimed, or of a lease that has ended and whose jobs no worker has
   * recovered. Degraded by default from `'30s'`; down only if given.
   */
  lag?: { degraded?: Duration; down?: Duration };
  /** More dead letters than this in one queue: degraded. Default: any number is fine. */
  dead?: number;
  /** Time since the last answer to the claim loop of a queue. Default `{ down: '60s' }`. */
  lastClaim?: { down: Duration };
  /** Part of Redis' maxmemory in use. Default `{ degraded: 0.8 }`. */
  memory?: { degraded: number };
}

export interface ResolvedThresholds {
  instance?: string;
  lagDegradedMs: number;
  lagDownMs?: number;
  dead?: number;
  lastClaimDownMs: number;
  memoryDegraded: number;
}

const RULES: OptionRules<HealthThresholds, ResolvedThresholds> = {
  instance: (draft, value, field) => {
    if (typeof value !== 'string' || value === '')
      throw new InvalidOptionError(`${field}: must be the name of an instance.`);
    draft.instance = value;
  },
  lag: (draft, value, field) => {
    if (typeof value !== 'object') {
      const given = shown(value);
      throw new InvalidOptionError(
        `${field}: ${given} is no object. Give { degraded: ${given} } or { down: ${given} }.`,
      );
    }
    const rules: OptionRules<{ degraded?: Duration; down?: Duration }, ResolvedThresholds> = {
      degraded: (to, duration, name) => {
        to.lagDegradedMs = parseDuration(duration, name);
      },
      down: (to, duration, name) => {
        to.lagDownMs = parseDuration(duration, name);
      },
    };
    readOptions(value, rules, draft, (option) => `${field}.${option}`);
  },
  dead: (draft, value, field) => {
    draft.dead = integer(value, 0, Number.MAX_SAFE_INTEGER, field);
  },
  lastClaim: (draft, value, field) => {
    draft.lastClaimDownMs = parseDuration(onlyField(value, 'down', field), `${field}.down`);
  },
  memory: (draft, value, field) => {
    const degraded = onlyField(value, 'degraded', field);
    if (typeof degraded !== 'number' || !(degraded > 0 && degraded <= 1)) {
      throw new InvalidOptionError(`${field}.degraded: must be a part between 0 and 1.`);
    }
    draft.memoryDegraded = degraded;
  },
};

/** What has one field. Another one is no limit, and must not look like one. @throws InvalidOptionError */
function onlyField(value: unknown, name: string, field: string): unknown {
  const rule = (read: { given?: unknown }, given: unknown) => void (read.given = given);
  return readOptions<{ given?: unknown }>(value, { [name]: rule }, {}, (option) => `${field}.${option}`).given;
}

/** @throws InvalidOptionError, InvalidDelayError */
export function resolveThresholds(thresholds: HealthThresholds): ResolvedThresholds {
  return readOptions(thresholds, RULES, { ...HEALTH_DEFAULTS }, (option) => `health threshold ${option}`);
}
