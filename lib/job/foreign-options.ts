/** What options of BullMQ and Bull are called here, or what to use instead; none of these names is an option here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  jobId: '`id` of enqueue()',
  removeOnComplete: 'completed jobs are removed already; `keepCompleted` of a queue or handler keeps some',
  removeOnFail: '`deadLetters: { max, maxAge }` of forRoot() says how many dead letters stay, and for how long',
  keepLogs: 'write to your own log; `job.id` and `job.queue` name the job',
  lifo: '`priority` of enqueue(), or a queue of its own for what is urgent',
  limiter: '`rateLimit: { max, per }` of a queue',
  rateLimiter: '`rateLimit: { max, per }` of a queue',
  repeat: 'schedule() of the producer, or `repeat` of @OnDelayed',
  repeatJobKey: 'schedule() of the producer; its `id` names the schedule',
  every: 'schedule() of the producer, with `{ every }` as its times',
  tz: '`timeZone`',
  cron: 'schedule() of the producer, with `{ cron, timeZone }` as its times',
  pattern: 'schedule() of the producer, with `{ cron, timeZone }` as its times',
  deduplication: "`id` with `uniqueFor` (throttle), or with `onDuplicate: 'replace'` and `delay` (debounce)",
  debounce: "`id` with `onDuplicate: 'replace'`, `delay` and `maxWait`; or `debounce` of defineQueue()",
  timestamp: '`at` says when a job is due; when it was made is recorded anyway',
  retries: '`attempts` (the first run counts) and `backoff`',
  maxRetries: '`attempts` (the first run counts) and `backoff`',
  retryDelay: '`backoff: fixed(...)`, `exponential(...)` or `steps([...])`',
  maxStalledCount: 'a job that loses its lease goes into quarantine; `lease` says how long a claim is valid',
  stalledInterval: '`lease` says how long a claim is valid; lost ones are found within it',
  lockDuration: '`lease`',
  lockRenewTime: 'nothing: a lease is renewed while its job runs',
  stackTraceLimit: 'nothing: five errors of a job are kept, the last one with its stack',
  sizeLimit: '`maxPayloadBytes` of forRoot()',
  failParentOnFailure: 'enqueue the next job at the end of a handler; there are no flows',
  parent: 'enqueue the next job at the end of a handler; there are no flows',
  children: 'enqueue the next job at the end of a handler; there are no flows',
  redis: '`connection` of forRoot()',
  url: '`connection` of forRoot()',
  host: '`connection: { host, port }` of forRoot()',
  port: '`connection: { host, port }` of forRoot()',
  createClient: '`connection` of forRoot(), also an ioredis instance',
  defaultJobOptions: '`defaults` of forRoot(), or of one queue `queues: { name: { ... } }` or defineQueue()',
  settings: '`defaults` of forRoot(), or of one queue `queues: { name: { ... } }`',
  processors: 'methods with @OnDelayed(queue) in a provider',
  registerQueue: 'queues need no registration; forFeature([definition]) gives typed handles',
  autorun: '`consume: false` of forRoot() for a process that only enqueues',
  skipLockRenewal: 'nothing: a lease is renewed while its job runs',
  skipVersionCheck: "`startupChecks: 'warn'` of forRoot()",
  enableReadyCheck: '`connection: { enableReadyCheck }` of forRoot()',
  maxRetriesPerRequest: '`commandTimeout` of forRoot()',
  logger: "app.useLogger(): the library logs by Nest's Logger",
  extraOptions: 'its fields stand beside the other options of forRoot()',
  sharedConnection: 'nothing: an instance shares its connections',
  configKey: '`name` of forRoot(), and `instance` of a handler',
  instance: 'the producer of that instance, which @InjectDelayQueue(name) injects',
  ttl: '`timeout` for the longest run; `expiresIn` of enqueue() for how late a job may start',
  opts: 'its fields beside the payload',
  parse: '`{ schema }` with that schema in it',
  safeParse: '`{ schema }` with that schema in it',
  '~standard': '`{ schema }` with that schema in it',
};

/** What says when a job comes again. */
const OF_SCHEDULES = ['tz', 'cron', 'every', 'pattern'];

/** What to use here instead of an option that another library has; undefined for other names. */
export function insteadOf(option: string, known: readonly string[]): string | undefined {
  if (!Object.hasOwn(ELSEWHERE, option)) return undefined;
  if (known.includes('repeat') && OF_SCHEDULES.includes(option))
    return '`repeat: { cron, timeZone }` or `repeat: { every }`';
  if (option === 'pattern' && known.includes('cron')) return '`cron`';
  const advice = ELSEWHERE[option]!;
  const [, own] = /^`(\w+)` of \w+\(\)$/.exec(advice) ?? [];
  // Where that is an option of the very call, saying of which call would mislead.
  return own !== undefined && known.includes(own) ? `\`${own}\`` : advice;
}
