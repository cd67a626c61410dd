import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { UnsafeServerError } from '../../lib/index.js';
import { freePort } from '../../tools/free-port.mjs';
import { untilServing } from '../../tools/server-info.mjs';
import { Tether } from '../../tools/tether.mjs';
import { createApp } from '../helpers/app.js';
import type { World } from '../helpers/world.js';
import { serverFolder } from './get.mjs';

let tether: Tether;
let world: World;
beforeAll(async () => {
  const program = join(serverFolder('redis-6.0'), 'redis-server');
  tether = await Tether.open();
  const port = await freePort();
  const log = join(tether.directory, 'redis.log');
  await tether.spawn(program, ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], { log });
  await untilServing(port);
  world = { connection: `redis://127.0.0.1:${port}`, prefix: 'old' } as World;
});
afterAll(() => tether.close());

it('Redis 6.0 is refused at boot, and the error says which version is needed', async () => {
  const boot = createApp(world, { options: { consume: false } });
  await expect(boot).rejects.toBeInstanceOf(UnsafeServerError);
  await expect(boot).rejects.toThrow(/is version 6\.0\.\d+; at least 6\.2 is needed/);
});
