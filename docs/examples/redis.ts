/** Where the examples keep their jobs: any Redis, or `memory://`. */
export const redis = {
  connection: process.env['REDIS_URL'] || 'redis://127.0.0.1:6379',
  prefix: process.env['DELAY_QUEUE_PREFIX'] || 'examples',
};
