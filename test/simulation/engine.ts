import { leave } from './present.js';

/** What holds events up: a process that is frozen, blocked or dead. */
export interface Place {
  readonly isDead: boolean;
  /** Simulated ms until which nothing happens in it. */
  readonly busyUntil: number;
  /** How many events had to wait until it goes on. */
  postponed: number;
  /** From now on its code runs. */
  enter(): void;
}

export interface SimulatedEvent {
  time: number;
  readonly order: number;
  readonly run: () => void;
  readonly place: Place | undefined;
  cancelled: boolean;
}

/**
 * Simulated time: one queue of events in the order of their times, and of their making where times are equal. Nothing else moves
 * time. It also keeps the trace, of which a hash is made: two runs with equal hashes were equal.
 */
export class Engine {
  /** Simulated ms since the start. */
  now = 0;
  lines = 0;
  events = 0;
  /** Hears each line of the trace. */
  print: ((line: string) => void) | undefined;
  #order = 0;
  #h1 = 0x811c9dc5;
  #h2 = 0x1234567;
  readonly #heap: SimulatedEvent[] = [];

  at(time: number, run: () => void, place?: Place): SimulatedEvent {
    const event = { time: Math.max(time, this.now), order: this.#order++, run, place, cancelled: false };
    this.#push(event);
    return event;
  }

  after(ms: number, run: () => void, place?: Place): SimulatedEvent {
    return this.at(this.now + ms, run, place);
  }

  trace(kind: string, actor: string, what: string | number): void {
    const line = `${this.now.toFixed(3)} ${kind} ${actor} ${what}`;
    let [h1, h2] = [this.#h1, this.#h2];
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i);
      h1 = Math.imul(h1 ^ code, 0x01000193);
      h2 = Math.imul(h2 + code, 0x5bd1e995) ^ (h2 >>> 15);
    }
    this.#h1 = h1;
    this.#h2 = h2;
    this.lines++;
    this.print?.(line);
  }

  get hash(): string {
    return [this.#h1, this.#h2].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** Nothing happens before this time: what is no process's own comes as much later. */
  sleep(until: number): void {
    const ms = until - this.now;
    const events = this.#heap.splice(0);
    for (const event of events) {
      if (!event.place && event.time < until) event.time += ms;
      if (!event.cancelled && !event.place?.isDead) this.#push(event);
    }
  }

  /** Runs one event; false when there is none before `until`. */
  step(until: number): boolean {
    for (;;) {
      const event = this.#heap[0];
      if (!event || event.time > until) {
        this.now = until;
        return false;
      }
      this.#pop();
      if (event.cancelled || event.place?.isDead) continue;
      if (event.place && event.place.busyUntil > event.time) {
        event.time = event.place.busyUntil; // It comes later, in its order.
        event.place.postponed++;
        this.#push(event);
        continue;
      }
      this.now = event.time;
      this.events++;
      if (event.place) event.place.enter();
      else leave();
      event.run();
      return true;
    }
  }

  #push(event: SimulatedEvent): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!comesBefore(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && comesBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!comesBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function comesBefore(one: SimulatedEvent, other: SimulatedEvent): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}
