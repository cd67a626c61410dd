import { describe, expect, it } from '@jest/globals';
import type { StepReply } from '../../lib/redis/step.protocol.js';
import { AnswerSize } from '../../lib/worker/answer-size.js';

const answer = (brought: number, isCut = false) =>
  ({ isCut, jobs: Array.from({ length: brought }) }) as Partial<StepReply> as StepReply;

describe('for how many jobs an answer has room', () => {
  it('is unknown until one was cut; then little more is asked for than that one brought', () => {
    const size = new AnswerSize();
    size.answered(answer(50));
    expect(size.most).toBe(Infinity);
    size.answered(answer(8, true));
    expect(size.most).toBe(10);
    size.answered(answer(9, true));
    expect(size.most).toBe(12);
  });

  it('grows twofold with each full answer, until a step asks for no more anyway', () => {
    const size = new AnswerSize();
    size.answered(answer(80, true));
    size.answered(answer(30)); // More were not due: that says nothing.
    expect(size.most).toBe(100);
    size.answered(answer(100));
    expect(size.most).toBe(200);
    size.answered(answer(200));
    expect(size.most).toBe(Infinity);
  });

  it('is a few at least, as one damaged entry or one large job may have cut it', () => {
    const size = new AnswerSize();
    size.answered(answer(0, true));
    expect(size.most).toBe(4);
    size.answered(answer(4));
    expect(size.most).toBe(8);
  });
});
