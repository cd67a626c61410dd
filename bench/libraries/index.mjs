// What the scenarios need of a library, and where it is.
//
//   settings                                       text for the report
//   openProducer({ url, space, queue, variant })   { enqueue(body, dueAt?), enqueueMany([{ body, dueAt?, group? }]), close() }
//   openWorker({ url, space, queues, concurrency, handle(job), delayed, limits?, variant? })    { close() }
//     variant: devalue, enhanced or requestScope, of ours; enqueueTo(queue, body, dueAt) of a producer as well
//     limits: { running, rate: { max, perMs } } over all processes, of the libraries that have some
//   dueAt(job)                                     epoch ms, inside handle()
//   store                                          'postgres', if it is no Redis
//   promises                                       of peers on other ground, in a line
//   counts(redis, space, queue, url)               { pending, other }: jobs that wait, and all others that are stored
//
// `space` begins every key. Loaded one at a time: a process that measures one library has not loaded the others.
const FILES = {
  ours: './ours.mjs',
  bullmq: './bullmq.mjs',
  beeQueue: './bee-queue.mjs',
  bare: '../bare.mjs',
  groupmq: './groupmq.mjs',
  graphileWorker: './graphile-worker.mjs',
  pgBoss: './pg-boss.mjs',
};

export const LIBRARIES = Object.keys(FILES);
export const TITLES = {
  ours: 'nestjs-delay-queue',
  bullmq: 'BullMQ',
  beeQueue: 'bee-queue',
  bare: 'bare client',
  groupmq: 'groupmq',
  graphileWorker: 'graphile-worker',
  pgBoss: 'pg-boss',
};

export function load(library) {
  return import(FILES[library]);
}
