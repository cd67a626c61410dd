/**
 * Which of `count` shards holds the job with this id: FNV-1a (32 bits) over the UTF-8 bytes of the id, its bits mixed once
 * more by the last step of MurmurHash3, modulo `count`. Part of the stored format, for clients in other languages too.
 *
 * Of an id that begins with braces only what is in them counts: all occurrences of a schedule are in the shard of its record.
 *
 * FNV alone leaves the low bits of ids that only count up in step with each other. Not crypto: a SHA-1 costs ten times as
 * much as the rest of an enqueue's checks.
 */
export function shardOf(id: string, count: number): number {
  if (count === 1) return 0;
  if (id.charCodeAt(0) === 0x7b) return shardOf(id.slice(1, id.indexOf('}')), count);
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) {
    const unit = id.charCodeAt(at);
    if (unit > 0x7f) return ofBytes(id, count);
    hash = Math.imul(hash ^ unit, 0x01000193);
  }
  return mixed(hash) % count;
}

/**
 * Which of `count` shards holds a job: that of its group, if it has one, else that of its id. So limits of a group, and the order in it, hold
 * over the whole queue. Part of the stored format, too.
 *
 * @param group its number (lib/job/place.ts): 49 well-mixed bits; 0 for none
 */
export function shardOfJob(id: string, group: number, count: number): number {
  return group > 0 ? group % count : shardOf(id, count);
}

function ofBytes(id: string, count: number): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(id)) hash = Math.imul(hash ^ byte, 0x01000193);
  return mixed(hash) % count;
}

function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
