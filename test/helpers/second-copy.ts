import { jest } from '@jest/globals';

/** The library once more, as an application has it that loads two versions: every class of it is another one. */
export async function secondCopy(): Promise<typeof import('../../lib/index.js')> {
  let copy: typeof import('../../lib/index.js') | undefined;
  await jest.isolateModulesAsync(async () => {
    copy = await import('../../lib/index.js');
  });
  return copy!;
}
