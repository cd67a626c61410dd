import type { Attributes, Histogram } from '@opentelemetry/api';
import type { Distribution } from '../tally/buckets.js';
import { guarded } from '../user-code.js';

/**
 * Hands each measurement to a histogram of the SDK. OpenTelemetry has no histogram that is asked for its counts at an
 * export, so this is the one part that costs something for each job. The attributes are made once.
 */
export class Recorder implements Distribution {
  constructor(
    private readonly histogram: Histogram,
    private readonly attributes: Attributes,
    private readonly tell: (error: unknown) => void,
  ) {}

  observe(seconds: number): void {
    // A view or an aggregation of the application that throws here would be an uncaught exception.
    guarded(() => this.histogram.record(seconds, this.attributes), undefined, this.tell);
  }
}

export const NOT_RECORDED: Distribution = { observe: () => {} };
