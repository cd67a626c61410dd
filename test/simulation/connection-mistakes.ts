import type { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import type { Member } from './fleet.js';
import type { Simulation } from './simulation.js';

/** An application that has one of these as its `connection` is refused before it asks for any server. */
const MALFORMED: readonly unknown[] = [
  '',
  ' redis://h',
  'undefined',
  'localhost',
  'localhost:99999',
  'http://h:1',
  'rediss//h',
  'redis://h:70000',
  'redis://h:1:2',
  'redis://undefined:6379',
  'redis://u:%E0%A4%A@h',
  'redis:///tmp/sock',
  '/tmp/sock',
  'unix:/tmp/sock',
  '"redis://h"',
  3,
  [],
  new Date(0),
  { port: 'x' },
  { port: 0 },
  { hots: 'h' },
  { host: 3 },
  { host: 'redis://h' },
  { path: '', port: 3.5 },
  { host: 'h', keyPrefix: 'x' },
  { cluster: [] },
  { cluster: [null] },
  { cluster: [70_001] },
  { cluster: ['70000'] },
  { cluster: ['h:70000'] },
  { cluster: ['redis://h:x'] },
  { cluster: [{ host: 'redis://h' }] },
  { cluster: [{ host: 'h', port: 'x' }] },
  { cluster: [{ host: 'h', port: 1 }], redisOptions: { keyPrefix: 'x' } },
  { sentinels: [] },
  { sentinels: ['h:1'], name: 'm' },
  { sentinels: [{ host: 'h' }], name: 3 },
  { sentinels: [{ host: 'redis://h' }], name: 'm' },
  { sentinels: [{ host: 'h', port: 0 }], name: 'm' },
];

/** @param which chooses it, from 0 to 1 */
export function tryMalformedConnection({ oracle }: Simulation, { process }: Member, which: number): void {
  const n = Math.floor(which * 1e6) % MALFORMED.length;
  const { resolveModuleOptions: resolve } = process.loader.library<{
    resolveModuleOptions: typeof resolveModuleOptions;
  }>('delay-queue.options');
  try {
    resolve({ connection: MALFORMED[n] }, 'other');
  } catch (error) {
    return oracle.calls.refused(error as Error);
  }
  oracle.report('untyped', `connection ${n} of ${process.id} is no error`);
}
