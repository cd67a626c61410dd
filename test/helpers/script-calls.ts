import { createHash } from 'node:crypto';
import { scriptSource } from '../../lib/lua/scripts.js';
import type { ScriptName } from '../../lib/lua/scripts.js';

/**
 * Tells whether a chunk on its way to Redis calls this script, on either kind of server. Loaded scripts go by their hash.
 *
 * @param andFirst also the first call over a connection, which brings the text of the script
 */
export function callsOf(script: ScriptName, andFirst = false): (chunk: Buffer) => boolean {
  const hashes = [true, false].map((flags) => createHash('sha1').update(scriptSource(script, flags)).digest('hex'));
  const marks = andFirst ? [...hashes, scriptSource(script, true).slice(-300)] : hashes; // scripts begin alike
  return (chunk) => marks.some((mark) => chunk.includes(mark));
}
