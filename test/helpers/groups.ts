/** What is stored of a queue that may have groups: scores by member, and fields by name. */
export interface GroupedQueue {
  readonly due: Readonly<Record<string, number>>;
  readonly grouped: Readonly<Record<string, number>>;
  readonly ring: Readonly<Record<string, number>>;
  readonly held: Readonly<Record<string, number>>;
  readonly running: object;
  readonly quarantine: object;
  readonly meta: Readonly<Record<string, string>>;
}

export interface GroupProblem {
  /** The index in which it shows. */
  readonly index: 'grouped' | 'ring' | 'held';
  readonly what: string;
}

/**
 * What holds of a queue with groups: whatever is due stands in `grouped` at its due time, each group with jobs is in `ring`, one that waits
 * no later than its head is due, and only what runs or is in quarantine is held.
 */
export function groupProblems(stored: GroupedQueue, now: number): GroupProblem[] {
  const { due, grouped, ring, held, running, quarantine, meta } = stored;
  const found: GroupProblem[] = [];
  const report = (index: GroupProblem['index'], what: string) => void found.push({ index, what });
  if (!(meta['needs'] ?? '').split(' ').includes('limits')) {
    for (const name of Object.keys({ ...grouped, ...ring, ...held })) report('grouped', `${name} is in a plain queue`);
    return found;
  }
  const members = new Map(Object.keys(grouped).map((member) => [member.slice(7), member]));
  for (const [id, at] of Object.entries(due)) {
    const member = members.get(id);
    if (member === undefined && meta['adopting'] === undefined) report('grouped', `${id} is due and in no group`);
    if (member !== undefined && timeOf(member) !== Math.min(Math.max(0, Math.floor(at)), 79 ** 7 - 1)) {
      report('grouped', `${id} is in its group with another due time`);
    }
  }
  for (const [member, place] of Object.entries(grouped)) {
    const base = String(place - (place % 16) + 9);
    const at = ring[base];
    if (!(member.slice(7) in due)) report('grouped', `${member.slice(7)} is in a group and not due`);
    if (at === undefined) report('ring', `group ${base} has jobs and is not in the ring`);
    else if (at >= 0 && at > Math.max(timeOf(member), now))
      report('ring', `group ${base} waits for longer than its head`);
  }
  // Where retries block, a job that has started keeps the place of its group while it waits to run again.
  for (const id of Object.keys(held)) {
    const isHeld = id in running || id in quarantine || (id in due && / block:1 /.test(` ${meta['limits']} `));
    if (!isHeld) report('held', `${id} is held and does not run`);
  }
  return found;
}

/** A time as lib/lua/shared/envelope.lua writes it. */
export function digitsOf(ms: number): string {
  let text = '';
  for (let rest = Math.min(Math.max(0, Math.floor(ms)), 79 ** 7 - 1), n = 0; n < 7; n++, rest = Math.floor(rest / 79)) {
    text = String.fromCharCode(44 + (rest % 79)) + text;
  }
  return text;
}

/** The same, read. */
function timeOf(member: string): number {
  let ms = 0;
  for (let at = 0; at < 7; at++) ms = ms * 79 + member.charCodeAt(at) - 44;
  return ms;
}
