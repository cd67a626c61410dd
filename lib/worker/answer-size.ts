import { STEP_MAX_JOBS } from '../redis/step.protocol.js';
import type { StepReply } from '../redis/step.protocol.js';

/** So many are asked for again at least: what cut an answer may have been one damaged entry, or one large job. */
const LEAST = 4;

/**
 * For how many jobs an answer has room, as the last ones tell. The script reads all jobs that it is asked for before it sees that they are too
 * many: of jobs of 200 KB fifty were read for five. So after an answer that was cut little more is asked for than it brought, and after a
 * full one twice as much.
 */
export class AnswerSize {
  /** The most that one claim should ask for. */
  most = Infinity;

  answered({ isCut, jobs }: StepReply): void {
    if (isCut) this.most = Math.max(LEAST, Math.ceil(jobs.length * 1.25));
    else if (jobs.length >= this.most) this.most = jobs.length < STEP_MAX_JOBS ? jobs.length * 2 : Infinity;
  }
}
