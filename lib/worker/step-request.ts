import type { StepRequest as WireRequest } from '../redis/step.protocol.js';
import type { Renewal } from './lease-renewal.js';
import type { SettlementBatch } from './settlement-buffer.js';

/** What a worker asks of one round trip, with its own claims and endings: what the answer says of them is applied to these. */
export interface StepRequest extends WireRequest {
  readonly renewals: readonly Renewal[];
  readonly settle: SettlementBatch;
}
