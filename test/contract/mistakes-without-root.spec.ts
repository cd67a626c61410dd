import { Module } from '@nestjs/common';
import { expect, it } from '@jest/globals';
import { DelayQueueModule, DelayQueueProducer } from '../../lib/index.js';
import { secondCopy } from '../helpers/second-copy.js';
import { Beginner, memoryRoot, Orders } from '../helpers/making-mistakes.js';

// Of a process in which no unnamed forRoot() was called yet, so they run in this order, and in a process of their own.

async function injected(...imports: NonNullable<Parameters<Beginner['boot']>[0]['imports']>): Promise<string> {
  const beginner = new Beginner();
  const boot = beginner.boot({ imports, providers: [Orders] });
  const message = await boot.then(
    () => 'boots',
    (error: Error) => error.message,
  );
  await beginner.close();
  return message;
}

const CANNOT = "Nest can't resolve dependencies of the Orders (?). Please make sure that the argument ";
const NOBODY = 'DelayQueueProducer (of DelayQueueModule.forRoot(), which nobody called) at index [0]';

it('forRoot() is forgotten and the producer is injected: the error of Nest tells of it', async () => {
  expect(await injected()).toContain(CANNOT + NOBODY);
});

it('the same beside imports: [DelayQueueModule]', async () => {
  expect(await injected(DelayQueueModule)).toContain(CANNOT + NOBODY);
});

it('forRoot() is that of another copy of the package', async () => {
  const other = await secondCopy();
  expect(
    await injected(other.DelayQueueModule.forRoot({ connection: 'memory://', shutdownHooksWarning: false })),
  ).toContain(
    `${CANNOT}DelayQueueProducer (of another copy of nestjs-delay-queue than the one whose forRoot() was called: load one, see \`npm ls nestjs-delay-queue\`) at index [0]`,
  );
});

it('there is only a named instance, and the producer of the unnamed one is injected', async () => {
  expect(await injected(memoryRoot({ name: 'eu' }))).toContain(
    `${CANNOT}DelayQueueProducer (of DelayQueueModule.forRoot() without a name; of the one with name "eu" inject it by @InjectDelayQueue("eu")) at index [0]`,
  );
});

it('the unnamed one is not global, and its module is not imported: the name is that of the class', async () => {
  @Module({ imports: [memoryRoot({ isGlobal: false })] })
  class Elsewhere {}
  expect(await injected(Elsewhere)).toContain(`${CANNOT}DelayQueueProducer at index [0]`);
  expect(await injected(memoryRoot())).toBe('boots');
  expect(DelayQueueProducer.name).toBe('DelayQueueProducer');
});
