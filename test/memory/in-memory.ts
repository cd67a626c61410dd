// For the jest project that runs specs of Redis once more, against the store in memory.
process.env['REDIS_URL'] = 'memory://';
