import { performance } from '../time-and-randomness.js';

const SILENT_MS = 60_000;
/** Different lines within that time. Beyond them nothing is said: their texts come from requests. */
const MOST = 100;

interface Said {
  readonly at: number;
  /** How often it was not said since then. */
  more: number;
}

/** Says a thing once a minute: a page asks every two seconds, and a list asks for each of its jobs. */
export class Repeats {
  readonly #said = new Map<string, Said>();

  constructor(private readonly now = () => performance.now()) {}

  /** @returns the line, with how often it was left out since it was said last; undefined: it is left out now */
  asSaid(line: string): string | undefined {
    const now = this.now();
    // Numbers in an error would make each line another one.
    const key = line.replaceAll(/[0-9]+/g, '#');
    const known = this.#said.get(key);
    if (known && now - known.at < SILENT_MS) {
      known.more++;
      return undefined;
    }
    this.#said.delete(key);
    this.#forgetBefore(now - SILENT_MS);
    if (this.#said.size >= MOST) return undefined;
    this.#said.set(key, { at: now, more: 0 });
    return known && known.more > 0 ? `${line} The same ${known.more} times since it was said last.` : line;
  }

  /** They are in the order in which they were said. What was left out since then is not told any more. */
  #forgetBefore(time: number): void {
    for (const [key, { at }] of this.#said) {
      if (at > time) return;
      if (this.#said.size >= MOST) this.#said.delete(key);
    }
  }
}
