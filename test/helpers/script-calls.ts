import { createHash } from 'node:crypto';
import { scriptSource } from '../../lib/lua/scripts.js';
import type { ScriptName } from '../../lib/lua/scripts.js';

/** Tells whether a chunk on its way to Redis calls this script, on either kind of server. Loaded scripts go by their hash. */
export function callsOf(script: ScriptName): (chunk: Buffer) => boolean {
  const hashes = [true, false].map((flags) => createHash('sha1').update(scriptSource(script, flags)).digest('hex'));
  return (chunk) => hashes.some((hash) => chunk.includes(hash));
}
