/** What the company needs to know of a worker. */
export interface CompanyMember {
  readonly suspects: number;
  /** Look for work now: something changed. */
  kick(): void;
  /** Think again whether there is something to do. */
  poke(): void;
  /** Tell Redis that the job it holds as "alone" has company now. */
  leaveAlone(): void;
}

/**
 * Which jobs share this process, over all its queues. A job that may have killed a process is run alone, so that its
 * neighbours never pay for it; and only a job known to have been alone is charged for a lost lease.
 */
export class Company<Member extends CompanyMember = CompanyMember> {
  readonly #members = new Set<Member>();
  /** Handlers running now. */
  #running = 0;
  /** Jobs that steps on their way may bring. */
  #wanted = 0;
  #solo: Member | undefined;
  #alone: Member | undefined;
  /** Rises with every request for jobs; tells whether somebody else asked meanwhile. */
  #requests = 0;

  join(member: Member): void {
    this.#members.add(member);
  }

  leave(member: Member): void {
    this.#members.delete(member);
    if (this.#alone === member) this.#alone = undefined;
    this.endSolo(member);
  }

  /** No handler runs and no step may bring one. */
  get isEmpty(): boolean {
    return this.#running === 0 && this.#wanted === 0;
  }

  /** Somebody runs suspects, or waits for the others to end so that it can. */
  mayClaim(): boolean {
    return this.#solo === undefined;
  }

  isSolo(member: Member): boolean {
    return this.#solo === member;
  }

  /** Stops all claiming in this process. False when another worker of it already did. */
  beginSolo(member: Member): boolean {
    this.#solo ??= member;
    return this.#solo === member;
  }

  endSolo(member: Member): void {
    if (this.#solo !== member) return;
    this.#solo = undefined;
    // The others first: suspects must not keep due jobs waiting turn after turn.
    for (const other of this.#members) if (other !== member) other.kick();
    member.kick();
  }

  /** A step of `member` leaves that may bring `jobs`. @returns a mark for `brought` */
  asking(member: Member, jobs: number): number {
    this.#wanted += jobs;
    if (this.#alone && this.#alone !== member) {
      const other = this.#alone;
      this.#alone = undefined;
      other.leaveAlone();
    }
    return ++this.#requests;
  }

  /** That step was answered. `alone`: Redis was told that its one job is alone here. */
  brought(member: Member, mark: number, wanted: number, jobs: number, alone: boolean): void {
    this.#wanted -= wanted;
    this.#running += jobs;
    if (alone) {
      this.#alone = member;
      if (mark !== this.#requests) {
        this.#alone = undefined;
        member.leaveAlone();
      }
    }
    this.#whenEmpty();
  }

  ended(): void {
    this.#running--;
    this.#whenEmpty();
  }

  #whenEmpty(): void {
    if (!this.isEmpty) return;
    for (const member of this.#members) if (member.suspects > 0) member.poke();
  }
}
