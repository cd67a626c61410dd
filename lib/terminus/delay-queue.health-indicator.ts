import { Injectable } from '@nestjs/common';
import { HealthIndicatorService } from '@nestjs/terminus';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import type { HealthThresholds } from '../health/thresholds.js';

/** `DelayQueueHealth` for terminus: `health.check([() => delayQueue.isHealthy('delay_queue', { lag: { down: '5m' } })])`. */
@Injectable()
export class DelayQueueHealthIndicator {
  constructor(
    private readonly terminus: HealthIndicatorService,
    private readonly instances: DelayQueueInstances,
  ) {}

  /**
   * Never throws: an indicator that throws makes the route answer 500. Degraded is `degraded` under terminus 12 and an up
   * with `degraded: true` under 11, which knows no such state; both answer 200.
   */
  async isHealthy<const Key extends string>(
    key: Key,
    thresholds: HealthThresholds = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const session = this.terminus.check(key);
    const name = thresholds?.instance ?? DEFAULT_INSTANCE; // `null` from code without types must not become a 500.
    const health = this.instances.health(name);
    if (!health) return session.down({ reasons: [`No DelayQueueModule.forRoot() declares instance "${name}".`] });
    const { status, ...details } = await health.check(thresholds);
    if (status === 'down') return session.down(details);
    if (status === 'up') return session.up(details);
    const degrading = session as unknown as { degraded?: (data: object) => HealthIndicatorResult<Key> };
    return degrading.degraded
      ? degrading.degraded({ ...details, degraded: true })
      : session.up({ ...details, degraded: true });
  }
}
