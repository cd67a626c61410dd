import type { DelayQueueMatchers } from './matcher-types.js';

// Types only: `import 'nestjs-delay-queue/testing/jest'` tells TypeScript what `expect(harness)` can do, for the global `expect`
// of @types/jest and for that of @jest/globals.
declare global {
  // oxlint-disable-next-line no-namespace -- it is how @types/jest is augmented
  namespace jest {
    // oxlint-disable-next-line no-unused-vars -- the parameters of the interface that is augmented
    interface Matchers<R, T = {}> extends DelayQueueMatchers {}
  }
}

// Where `expect` cannot be found, there is nothing to augment.
// @ts-ignore
declare module 'expect' {
  // oxlint-disable-next-line no-unused-vars -- as above
  interface Matchers<R extends void | Promise<void>, T = unknown> extends DelayQueueMatchers {}
}

export type { DelayQueueMatchers };
