/** How many letters may be wrong in a name of this length for it to be taken for another one. */
function mostWrong(name: string): number {
  return name.length < 4 ? 0 : name.length < 8 ? 2 : 3;
}

/** The nearest of the known names, if it is near enough to have been meant. */
export function nearestOption(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = mostWrong(name) + 1;
  for (const candidate of known) {
    const wrong = distance(name.slice(0, 40).toLowerCase(), candidate.toLowerCase());
    if (wrong < least) [nearest, least] = [candidate, wrong];
  }
  return nearest;
}

/**
 * The known name of a queue from which this one differs by one letter: too many, missing, another, or two that changed
 * places; or by capitals alone. Not by a digit: `tenant-1` and `tenant-2` are two queues.
 */
export function oneLetterOff(name: string, known: Iterable<string>): string | undefined {
  const small = name.toLowerCase();
  for (const candidate of known) if (candidate !== name && candidate.toLowerCase() === small) return candidate;
  if (name.length < 4) return undefined;
  const shape = withoutDigits(name);
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > 2 || candidate === name || withoutDigits(candidate) === shape)
      continue;
    if (distance(name, candidate) === 1 || isOffInTwoWords(name, candidate)) return candidate;
  }
  return undefined;
}

/** One letter in each of two words, such as `payments.checks` for `payment.check`; both long enough, and without another digit. */
function isOffInTwoWords(name: string, candidate: string): boolean {
  const [words, others] = [name, candidate].map((one) => one.split(/[^a-z\d]/i)) as [string[], string[]];
  if (words.length !== others.length) return false;
  const pairs = words.map((word, n) => [word, others[n]!] as const).filter(([word, other]) => word !== other);
  return (
    pairs.length === 2 &&
    pairs.every(
      ([word, other]) => word.length > 3 && withoutDigits(word) !== withoutDigits(other) && distance(word, other) === 1,
    )
  );
}

function withoutDigits(name: string): string {
  return name.replaceAll(/\d/g, '');
}

/** Letters to add, drop, change, or swap with their neighbour (optimal string alignment). */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      let least = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, before[j - 2]! + 1);
      next[j] = least;
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
