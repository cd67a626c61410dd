import type { DelayQueueMatchers } from './matcher-types.js';

// Types only: `import 'nestjs-delay-queue/testing/vitest'` tells TypeScript what `expect(harness)` can do. From vitest 3.2 on, which
// has this interface for it.
// @ts-ignore -- The library is built without vitest.
declare module 'vitest' {
  // oxlint-disable-next-line no-unused-vars -- the parameters of the interface that is augmented
  interface Matchers<T = any> extends DelayQueueMatchers {}
}

export type { DelayQueueMatchers };
