import { shown } from '../job/duration.js';
import { badRequest } from './problems.js';

/** Jobs in one call. */
export const MOST = 1_000;

/**
 * The fields of a query or of a body, by name. What is none of those that were asked for is refused: a misspelt `range` must not
 * mean all jobs.
 */
export class Fields {
  readonly #asked = new Set<string>();

  /** @param where `query` or `body`, for messages */
  private constructor(
    private readonly values: Readonly<Record<string, unknown>>,
    private readonly where: string,
  ) {}

  static ofBody(values: Readonly<Record<string, unknown>>): Fields {
    return new Fields(values, 'body');
  }

  /** All values are texts; of a name that is given twice the first one counts. */
  static ofQuery(query: URLSearchParams): Fields {
    const values: Record<string, unknown> = Object.create(null);
    for (const [name, value] of query) values[name] ??= value;
    return new Fields(values, 'query');
  }

  /** As it is: what takes it checks it. */
  any(name: string): unknown {
    this.#asked.add(name);
    const value = Object.hasOwn(this.values, name) ? this.values[name] : undefined;
    return value === null ? undefined : value;
  }

  text(name: string): string {
    const value = this.optionalText(name);
    if (value === undefined) throw badRequest(`${this.where}: \`${name}\` is missing.`);
    return value;
  }

  optionalText(name: string): string | undefined {
    const value = this.any(name);
    if (value === undefined || typeof value === 'string') return value;
    throw badRequest(`${this.where}: \`${name}\` must be a text, but is ${shown(value)}.`);
  }

  flag(name: string): boolean {
    const value = this.any(name) ?? false;
    if (typeof value === 'boolean') return value;
    throw badRequest(`${this.where}: \`${name}\` must be true or false, but is ${shown(value)}.`);
  }

  /** A whole number, which in a query is a text. */
  number(name: string): number | undefined {
    const value = this.any(name);
    if (value === undefined || value === '') return undefined;
    const number = typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
    if (Number.isSafeInteger(number)) return number as number;
    throw badRequest(`${this.where}: \`${name}\` must be a whole number, but is ${shown(value)}.`);
  }

  /** How many jobs a call may change. */
  most(): number {
    const most = this.number('most') ?? MOST;
    if (most >= 1 && most <= MOST) return most;
    throw badRequest(`${this.where}: \`most\` must be 1 to ${MOST}, but is ${most}.`);
  }

  /** Of a name that must be there. */
  required<Value>(name: string, value: Value | undefined): Value {
    if (value !== undefined) return value;
    throw badRequest(`${this.where}: \`${name}\` is missing.`);
  }

  /** @throws DashboardProblem for what nobody has asked for */
  end(): void {
    const unknown = Object.keys(this.values).find((name) => !this.#asked.has(name));
    if (unknown === undefined) return;
    throw badRequest(
      `${this.where}: nobody knows \`${unknown.slice(0, 100)}\`. There is ${[...this.#asked].join(', ')}.`,
    );
  }
}
