import type { DelayedJob } from '../../lib/job/delayed-job.js';
import { groupProblems } from '../helpers/groups.js';
import { isJunk } from './damage.js';
import { LimitState } from './limit-state.js';
import { AT_LIMIT, LINE, NO_GROUP } from './limited-store.js';
import type { StoredLimits } from './limited-store.js';
import type { Oracle } from './oracle.js';
import type { RunPlan } from './plan.js';
import { isPlain, queueOf } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Settled } from './step-arguments.js';
import { TurnRules } from './turn-rules.js';
import type { Concerns } from './witness.js';

/** In calm some worker sweeps in this time, and looks at groups whose time has come. */
const SWEPT_MS = 10_000;
const LOOKED_AT_MS = 6_000;
/** All indexes are read at one look of so many. */
const LOOKS = 3;
/** Outcomes after which a job waits again. */
const AGAIN = new Set(['r', 's', 'l']);

export interface StartedJob {
  readonly id: string;
  readonly base: string;
  /** When it was due; undefined of one from the quarantine. */
  readonly due: number | undefined;
  readonly priority: number;
  readonly hasExpired: boolean;
  /** It had the place of its group. */
  readonly wasKept: boolean;
}

/**
 * Limits of a queue and of its groups hold at each claim, and by the clock of the server; groups take turns; and nothing of them is left
 * when all is done.
 */
export class LimitRules implements ScriptRules {
  readonly #states = new Map<string, LimitState>();
  readonly #turns: TurnRules;
  /** By the names of groups what they are stored as, and the other way round. */
  readonly #bases = new Map<string, string>();
  /** Where the jobs of a group have started. */
  readonly #shards = new Map<string, string>();
  #state: LimitState | undefined;
  #before: StoredLimits | undefined;
  #setBy: string | null = null;
  #started: StartedJob[] = [];
  /** The script has written what runs, or what is said of limits. */
  #isTouched = false;
  #isChanged = false;
  #jumps = 0;

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {
    this.#turns = new TurnRules(oracle);
  }

  /** Whether the queue of this key has limits, groups or priorities. */
  isLimited(dueKey: string): boolean {
    return this.#states.get(dueKey)?.isLimited ?? false;
  }

  /** When a queue with limits is worth a look, by what is stored now; undefined while nothing may start before a run ends. */
  momentOf(dueKey: string): number | undefined {
    return this.#states.get(dueKey)!.store.moment(this.#nowOf(dueKey));
  }

  /** Since when a due job might have started, as far as limits go; simulated ms, Infinity while it might not. */
  mayStartSince(dueKey: string, id: string): number {
    return this.#states.get(dueKey)?.mayStartSince(id, this.#nowOf(dueKey), this.simulation.engine.now) ?? -Infinity;
  }

  /** Jobs that keep the places of their groups while they wait. */
  keptIn(queue: string): string[] {
    const states = [...this.#states].filter(([dueKey]) => queueOf(dueKey) === queue);
    return states.flatMap(([, state]) => [...state.kept.keys()]);
  }

  /** Those of them that go before a job of their group, and when they are due. */
  keptBefore(dueKey: string, id: string): (readonly [id: string, due: number])[] {
    return this.#states.get(dueKey)?.keptBefore(id) ?? [];
  }

  /** How many jobs of a queue may run at a time. */
  countOf(dueKey: string): number {
    return this.#states.get(dueKey)?.limits.count ?? Infinity;
  }

  begins(script: RunningScript): void {
    const { name, keys } = script;
    this.#state = this.#stateOf(keys[SHARD_KEYS.due]!);
    this.#started = [];
    this.#isTouched = this.#isChanged = false;
    const state = this.#state;
    if (!state) return;
    this.#seesJumps();
    state.sees(this.#nowOf(keys[0]!));
    this.#givesBack(script, state);
    this.#before = state.limits;
    if (name === 'limit') this.#setBy = this.oracle.peek('HGET', keys[SHARD_KEYS.meta]!, 'limitsBy') as string | null;
  }

  runs(script: RunningScript, name: string, args: readonly string[]): void {
    const { keys, step } = script;
    const state = this.#state;
    if (!state || name[0] === 'P') return;
    const [key] = args;
    if (key === keys[SHARD_KEYS.meta] && (args.includes('limits') || args.includes('needs'))) this.#isChanged = true;
    if (key === keys[SHARD_KEYS.running] || key === keys[SHARD_KEYS.quarantine]) this.#isTouched = true;
    if (key === keys[SHARD_KEYS.due] && !step && (name === 'ZADD' || name === 'ZREM')) {
      this.#isTouched = true;
      for (const id of args) state.kept.delete(id);
      if (script.name === 'moveIn') this.#movesIn(script, args, state);
    }
    if (name !== 'ZADD' || !step || args[1] === 'XX') return;
    // One that was claimed to be settled as expired, and lost its lease, comes to the quarantine with a place of its group.
    if (key === keys[SHARD_KEYS.quarantine] && state.store.score('due', args[2]!) !== undefined)
      state.expired.delete(args[2]!);
    if (key !== keys[SHARD_KEYS.running]) return;
    for (let i = 2; i < args.length; i += 2)
      if (!isMark(args[i]!) && !isJunk(args[i]!)) this.#starts(script, state, args[i]!, args[i - 1]!);
  }

  ends(script: RunningScript): void {
    const state = this.#state;
    if (!state) return;
    const now = this.#nowOf(script.keys[0]!);
    if (this.#isChanged) state.sees(now);
    const hasChanged = state.limits !== this.#before;
    if (hasChanged) {
      state.limitsChanged(this.#before!, this.simulation.engine.now);
      if (!state.limits.blocks) state.kept.clear();
      this.#judgeChange(script, state);
      this.#turns.forget(state);
    }
    if (!state.isLimited) state.active = new Map();
    if (!state.isLimited) return;
    for (const { id, hasExpired } of this.#started) {
      if (hasExpired) state.expired.add(id);
      else state.expired.delete(id);
    }
    this.#keep(script, state);
    if (this.#isTouched || hasChanged) state.update(this.simulation.engine.now);
    // What somebody else has written is nothing to judge by. What happens meanwhile counts afterwards.
    if (this.#started.length === 0 || this.simulation.damages.isIn(state.store.base)) return;
    this.#judgeCounts(state, now);
    this.#judgeRates(state, now);
    this.#turns.judge(state, this.#started, now);
  }

  rolledBack(length: number, concerns: Concerns): void {
    for (const [dueKey, state] of this.#states) {
      if (!concerns(queueOf(dueKey), dueKey)) continue;
      state.rolledBack(length, this.simulation.engine.now);
      this.#turns.forget(state);
    }
  }

  /** A job is of the group that its call said. */
  handlerBegins({ id, group }: DelayedJob, run: RunPlan): void {
    if (run.group === undefined || run.group === group) return;
    this.oracle.report('groups', `${id} runs as one of group ${group}, and was enqueued with ${run.group}`);
  }

  /** From time to time: what is stored of groups agrees with the jobs, and whoever died has given back its share. */
  look(base: string): void {
    const state = this.#states.get(`${base}due`);
    if (!state) return;
    state.sees(this.#nowOf(base));
    if (!state.isLimited) return;
    const { troubles, engine } = this.simulation;
    if (state.looks++ % LOOKS === 0) this.#judgeIndexes(state);
    const sweptSince = troubles.calmSince() + SWEPT_MS + this.simulation.configuration.leaseMs;
    if (!isWorked(base) || sweptSince > engine.now) return;
    const [first] = state.store.entries('leases');
    if (first && first[1] < this.#nowOf(base) - SWEPT_MS)
      this.oracle.reportOnce('share', first[0], `the lease ${first[0]} of ${base} ended ${Math.round(this.#nowOf(base) - first[1])} ms ago, and still has its share`); // prettier-ignore
  }

  /** Jobs that are due and may start, in one group no more than one: the one that waits for longest. */
  heads(base: string): readonly [id: string, due: number][] | undefined {
    const state = this.#states.get(`${base}due`);
    if (!state?.isLimited) return undefined;
    const heads = new Map<string, [string, number]>();
    for (const entry of state.store.entries('due', String(this.#nowOf(base)))) {
      const group = state.store.placeOf(entry[0]).base;
      if (!heads.has(group)) heads.set(group, entry);
    }
    return [...heads.values()];
  }

  /** All jobs have ended: nothing of groups is left, but for windows that are not over. */
  atEnd(base: string): void {
    const state = this.#states.get(`${base}due`);
    if (!state?.isLimited || this.simulation.damages.isIn(base)) return;
    for (const index of ['due', 'running', 'quarantine']) if (state.store.size(index) > 0) return;
    for (const index of ['grouped', 'held']) {
      const [left] = state.store.entries(index);
      if (left) this.oracle.report('leftover', `${base}${index} has ${left[0]}, though all jobs have ended`);
    }
    const ring = state.store.entries('ring');
    const over = ring.find(([, score]) => timeOf(score) < this.#nowOf(base) - LOOKED_AT_MS);
    if (over && isWorked(base)) this.oracle.report('leftover', `${base}ring has ${over[0]} at ${over[1]}, though all jobs have ended`); // prettier-ignore
    const named = new Set(ring.map(([group]) => group));
    for (const group of this.oracle.peek('HKEYS', `${base}rates`) as string[]) {
      if (group !== '' && !named.has(group))
        this.oracle.report('leftover', `${base}rates has ${group}, and ring has not`);
    }
  }

  #stateOf(dueKey: string): LimitState | undefined {
    const known = this.#states.get(dueKey);
    const { limits, limited } = this.simulation.configuration;
    if (known || !limits) return known;
    const queue = queueOf(dueKey);
    if (!limited.some((one) => one.queue === queue)) return undefined;
    const state = new LimitState(this.oracle, dueKey.slice(0, -'due'.length));
    this.#states.set(dueKey, state);
    return state;
  }

  #seesJumps(): void {
    const { jumps } = this.simulation.clocks;
    for (const { at, ms, bases } of jumps.slice(this.#jumps)) {
      for (const state of this.#states.values()) {
        if (bases && !bases.has(state.store.base)) continue;
        if (ms < 0) state.clockWentBack(at);
        this.#turns.forget(state);
      }
    }
    this.#jumps = jumps.length;
  }

  /** From another shard, also with the place of its group. */
  #movesIn({ args }: RunningScript, [, due, id]: readonly string[], { kept }: LimitState): void {
    if (id !== undefined && args[args.indexOf(id) + 1] === 'b') kept.set(id, Number(due));
  }

  #starts(script: RunningScript, state: LimitState, id: string, claim: string): void {
    const { store, starts } = state;
    const { base, priority, expiresAt, name } = store.placeOf(id);
    if (base !== NO_GROUP) this.#judgeShard(state, id, base);
    const due = store.score('due', id);
    const now = this.#nowOf(store.base);
    const hasExpired = now > expiresAt;
    const wasKept = state.keeps(id) || this.#endsToWait(script, state, id);
    this.#started.push({ id, base, due, priority, hasExpired, wasKept });
    state.kept.delete(id);
    if (name !== undefined) this.#judgeName(id, name, base);
    if (hasExpired) return;
    const { length } = this.simulation.server.disk;
    starts.note({ id, claim, at: now, length, group: base === NO_GROUP ? undefined : base });
  }

  /** What was claimed and did not begin counts for no rate. A process may say so of a job whose lease it has lost. */
  #givesBack({ step, before }: RunningScript, { starts }: LimitState): void {
    for (const [i, one] of (step?.settled ?? []).entries()) {
      const { held, isQuarantined } = before[i]!;
      const { id, claim, isUnbegun } = one;
      if (!isUnbegun && !this.#waitsForAnother(one)) continue;
      if (held === claim || isQuarantined) starts.giveBack(id, claim);
    }
  }

  /** All jobs of a group are in one shard, or its limits would hold in each of them. */
  #judgeShard({ store }: LimitState, id: string, base: string): void {
    if (this.simulation.configuration.reshards.length > 0) return;
    const group = `${queueOf(store.base)} ${base}`;
    const shard = this.#shards.get(group) ?? store.base;
    this.#shards.set(group, store.base);
    if (shard !== store.base) this.oracle.report('groups', `${id} of group ${base} starts in ${store.base}, and others of it did in ${shard}`); // prettier-ignore
  }

  /** Two groups never share a limit, and one has but one. */
  #judgeName(id: string, name: string, base: string): void {
    const known = this.#bases.get(name) ?? this.#bases.get(`#${base}`);
    this.#bases.set(name, base).set(`#${base}`, name);
    if (known !== undefined && known !== base && known !== name)
      this.oracle.report('groups', `${id} of group ${name} is stored as one of ${base}, and the group was ${known}`);
  }

  /**
   * Where retries block, a job that has started keeps the place of its group while it waits again. A step that comes late settles its run
   * and starts the next one.
   */
  #keep(script: RunningScript, state: LimitState): void {
    const { kept, store } = state;
    for (const { id } of script.step?.settled ?? []) {
      const due = store.score('due', id);
      // What was claimed to be settled as expired took no place: a process may hand it back before it says so.
      if (due === undefined || state.expired.has(id) || !this.#endsToWait(script, state, id)) continue;
      if (store.placeOf(id).base !== NO_GROUP && !store.isReserved(id)) kept.set(id, due);
    }
  }

  /** This step ends a run of it, after which it waits again. A run whose lease was lost may end while its job is in quarantine. */
  #endsToWait({ step, before }: RunningScript, { limits }: LimitState, id: string): boolean {
    if (!limits.blocks || limits.groupCount !== 1) return false;
    return (step?.settled ?? []).some((one, i) => {
      const { held, isQuarantined, isFollowed } = before[i]!;
      if (one.id !== id || !AGAIN.has(one.verb) || this.#waitsForAnother(one)) return false;
      return (held === one.claim || isQuarantined) && !isFollowed;
    });
  }

  /**
   * It keeps no place in its group and counts for no rate: an occurrence that waits for an earlier one, which may itself wait for this very
   * group. That its process says so is not enough: some server must have told it to wait, by this claim.
   */
  #waitsForAnother({ id, claim, isPassable }: Settled): boolean {
    return isPassable && this.oracle.schedules.wasToldToWait(id, claim);
  }

  #judgeCounts(state: LimitState, now: number): void {
    const { store, limits, active } = state;
    const running = store.size('running');
    if (running > limits.count) {
      const who = this.#started.map(({ id }) => id).join(', ');
      this.oracle.report(
        'limit',
        `${store.base} runs ${running} jobs and may run ${limits.count}, when it starts ${who}`,
      );
    }
    for (const { id, base, due, hasExpired, wasKept } of this.#started) {
      if (base === NO_GROUP || due === undefined || hasExpired) continue;
      // Several have the place that had started before the limit became one. They run one after the other.
      const waiting = wasKept ? [...state.kept.keys()].filter((other) => this.#waitsIn(state, other, base)).length : 0;
      const many = this.#activeIn(store.base, base, active) - waiting;
      const why = wasKept ? ', whose place it had' : '';
      if (many > limits.groupCount) this.oracle.report('limit', `${store.base} starts ${id} of group ${base}${why}, which has ${many} jobs and may have ${limits.groupCount}, at ${now}`); // prettier-ignore
    }
  }

  #waitsIn(state: LimitState, id: string, base: string): boolean {
    return state.keeps(id) && state.store.placeOf(id).base === base;
  }

  /** Over all shards: the number of them may just have changed. */
  #activeIn(base: string, group: string, here: ReadonlyMap<string, number>): number {
    const queue = queueOf(base);
    const others = [...this.#states.values()].filter(
      (one) => one.store.base !== base && queueOf(one.store.base) === queue,
    );
    // What a change of that number moved, the shards that it left have not said.
    if (this.simulation.configuration.reshards.length > 0)
      for (const one of others) one.update(this.simulation.engine.now);
    return others.reduce((sum, { active }) => sum + (active.get(group) ?? 0), here.get(group) ?? 0);
  }

  #judgeRates({ store, limits: { rate, groupRate }, starts }: LimitState, now: number): void {
    const many = rate ? starts.count(now, rate) : 0;
    if (many > (rate?.max ?? 0)) this.oracle.report('rate', `${store.base} has started ${many} jobs in ${rate!.per} ms, and may start ${rate!.max}`); // prettier-ignore
    if (!groupRate) return;
    for (const base of new Set(this.#started.map((one) => one.base))) {
      const ofGroup = base === NO_GROUP ? 0 : starts.count(now, groupRate, base);
      if (ofGroup > groupRate.max) this.oracle.report('rate', `group ${base} of ${store.base} has started ${ofGroup} jobs in ${groupRate.per} ms, and may start ${groupRate.max}`); // prettier-ignore
    }
  }

  /** What an operator has set, no boot of an application changes. */
  #judgeChange({ name, args }: RunningScript, { store, limits }: LimitState): void {
    if (name !== 'limit' || args[1] !== 'c' || this.#setBy !== 'o') return;
    this.oracle.report(
      'limits',
      `an application set the limits of ${store.base} to "${limits.text}", which an operator had set`,
    );
  }

  /** A head that was overdue when it came counts from then on, also where the clock has gone back since. */
  #problems({ store, latest }: LimitState): ReturnType<typeof groupProblems> {
    const scores = (index: string) => Object.fromEntries(store.entries(index));
    const fields = this.oracle.peek('HGETALL', `${store.base}meta`) as string[];
    const meta: Record<string, string> = {};
    for (let i = 0; i < fields.length; i += 2) meta[fields[i]!] = fields[i + 1]!;
    const [due, grouped, ring, held] = ['due', 'grouped', 'ring', 'held'].map(scores);
    const indexes = { due: due!, grouped: grouped!, ring: ring!, held: held! };
    return groupProblems({ ...indexes, running: scores('running'), quarantine: scores('quarantine'), meta }, latest);
  }

  /** They hold what is due, each job stands where its envelope says, and only what runs has a place. */
  #judgeIndexes(state: LimitState): void {
    const { store } = state;
    for (const { index, what } of this.#problems(state)) this.oracle.reportOnce('groups', `${index} ${store.base}`, `${what} (${index} of ${store.base})`); // prettier-ignore
    const bases = new Set(this.oracle.peek('HKEYS', `${store.base}rates`) as string[]);
    for (const [member, place] of store.entries('grouped')) {
      const id = member.slice(7);
      const { place: said, base } = store.placeOf(id);
      bases.add(base);
      if (said !== place) this.oracle.reportOnce('groups', id, `${id} stands at ${place} in ${store.base}grouped, and its envelope says ${said}`); // prettier-ignore
    }
    for (const [base, score] of store.entries('ring')) {
      // One that is in line or at its limit is looked at soon, and goes if there is nothing.
      if (score >= 0 && !bases.has(base)) this.oracle.reportOnce('groups', base, `group ${base} is in ${store.base}ring, and has neither jobs nor starts`); // prettier-ignore
    }
  }

  /** As scripts know it. */
  #nowOf(key: string): number {
    return Math.floor(this.simulation.clockMs(key));
  }
}

/** Until when a group is at a limit, or when its window is over; of one in line nothing but the past. */
function timeOf(score: number): number {
  if (score >= 0) return score;
  return score < LINE ? score - AT_LIMIT : -Infinity;
}

function isMark(id: string): boolean {
  return id.startsWith('{-');
}

/** Workers look at it all the time; those who pull need not. */
function isWorked(base: string): boolean {
  const queue = queueOf(base);
  return isPlain(queue) || queue === 'batched';
}
