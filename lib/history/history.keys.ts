/** How long a minute of history, and what is known of it, is kept. */
export const KEPT_MS = 24 * 3_600_000;
/** A process that has not shown itself for so long counts as gone. It shows itself every third of it. */
export const ALIVE_MS = 45_000;
export const MINUTE_MS = 60_000;

/** What happened to the jobs of a queue in one minute: a hash of counts. */
export function minuteKey(prefix: string, queue: string, minute: number): string {
  return `${prefix}:{${queue}}:minute:${minute}`;
}

/** The processes that showed themselves, and when: a sorted set of names. */
export function processesKey(prefix: string): string {
  return `${prefix}:processes`;
}

/** What one process says of itself: JSON. */
export function processKey(prefix: string, name: string): string {
  return `${prefix}:process:${name}`;
}
