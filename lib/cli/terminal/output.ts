import type { WriteStream } from 'node:tty';
import { cut, escaped, escapedJson, widthOf } from './escape.js';
import { fitted } from './fit.js';

/** A column of a table: for a terminal its title and what it shows, for a pipe perhaps something more exact. */
export interface Column<Row> {
  readonly title: string;
  readonly of: (row: Row) => string;
  /** Into a pipe. Default: the same. */
  readonly exact?: (row: Row) => string;
  readonly right?: boolean;
  /** Says what another column says, for a person. */
  readonly forPeople?: boolean;
}

export type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green';
const CODES: Record<Style, string> = { bold: '1', dim: '2', red: '31', yellow: '33', green: '32' };

export interface OutputOptions {
  readonly json: boolean;
  readonly color: boolean;
}

/** Rows that decide how wide the columns are. Those that come later may be wider. */
const SAMPLE = 200;
const GAP = '  ';

/** Writes what a command has to say: results to stdout, everything else to stderr. */
export class Output {
  #progressed = false;

  constructor(
    private readonly options: OutputOptions,
    readonly stdout: WriteStream = process.stdout,
    readonly stderr: WriteStream = process.stderr,
  ) {}

  get isJson(): boolean {
    return this.options.json;
  }

  /** Does a person read it? */
  get isTerminal(): boolean {
    return this.stdout.isTTY === true && !this.options.json;
  }

  get columns(): number {
    return this.stdout.columns || 80;
  }

  line(text: string): void {
    this.#clearProgress();
    this.stdout.write(`${text}\n`);
  }

  json(value: unknown): void {
    this.line(escapedJson(value));
  }

  /** Text from Redis, for a line of the command's own. */
  safe(text: string): string {
    return escaped(text);
  }

  styled(text: string, style: Style): string {
    return this.options.color ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
  }

  table<Row>(columns: readonly Column<Row>[], rows: Iterable<Row>): void {
    const table = this.rows(columns);
    for (const row of rows) table.add(row);
    table.end();
  }

  /** A table whose rows come by and by; as JSON one object a line. */
  rows<Row>(columns: readonly Column<Row>[]): RowWriter<Row> {
    return new RowWriter(this, columns);
  }

  /** One thing: its fields below each other; as JSON the object. */
  record(
    fields: readonly (readonly [label: string, text: string | undefined, exact?: string])[],
    object: unknown,
  ): void {
    if (this.isJson) return this.json(object);
    const shown = fields.filter(([, text]) => text !== undefined);
    if (!this.isTerminal) {
      for (const [label, text, exact] of shown) this.line(`${label}\t${escaped(exact ?? text!)}`);
      return;
    }
    const width = Math.max(...shown.map(([label]) => label.length));
    for (const [label, text] of shown) {
      const lines = text!.split('\n').map(escaped);
      this.line(`${this.styled(label.padEnd(width), 'dim')}${GAP}${lines.join(`\n${' '.repeat(width)}${GAP}`)}`);
    }
  }

  /** A sentence beside the result. */
  note(text: string): void {
    this.#clearProgress();
    this.stderr.write(`${escaped(text)}\n`);
  }

  /** How far it is: one line that is written over, and nothing where nobody watches. */
  progress(text: string): void {
    if (this.stderr.isTTY !== true) return;
    this.stderr.write(`\r\u001b[2K${cut(escaped(text), (this.stderr.columns || 80) - 1)}`);
    this.#progressed = true;
  }

  error(message: string, code: string | undefined): void {
    this.#clearProgress();
    if (this.isJson) this.stderr.write(`${escapedJson({ error: { code, message } })}\n`);
    else this.stderr.write(`error: ${escaped(message)}${code ? ` (${code})` : ''}\n`);
  }

  #clearProgress(): void {
    if (this.#progressed) this.stderr.write('\r\u001b[2K');
    this.#progressed = false;
  }
}

export class RowWriter<Row> {
  private readonly columns: readonly Column<Row>[];
  #waiting: Row[] | undefined = [];
  #widths: readonly number[] = [];

  constructor(
    private readonly output: Output,
    columns: readonly Column<Row>[],
  ) {
    this.columns = output.isTerminal ? columns : columns.filter(({ forPeople }) => !forPeople);
  }

  add(row: Row): void {
    if (this.output.isJson) this.output.json(row);
    else if (!this.output.isTerminal)
      this.output.line(this.columns.map((one) => escaped((one.exact ?? one.of)(row))).join('\t'));
    else if (!this.#waiting) this.#write(this.#cells(row));
    else if (this.#waiting.push(row) >= SAMPLE) this.end();
  }

  /** What was held back to measure it. */
  end(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    this.#waiting = undefined;
    if (waiting.length === 0) return;
    const titles = this.columns.map(({ title }) => title.toUpperCase());
    const cells = waiting.map((row) => this.#cells(row));
    this.#widths = titles.map((title, n) => Math.max(...[title, ...cells.map((row) => row[n]!)].map(widthOf)));
    this.#write(titles, true);
    for (const row of cells) this.#write(row);
  }

  #cells(row: Row): string[] {
    return this.columns.map((one) => escaped(one.of(row)));
  }

  #write(cells: readonly string[], isTitle = false): void {
    const own = cells.map((cell, n) => Math.max(this.#widths[n]!, widthOf(cell)));
    const room = this.output.columns - GAP.length * (cells.length - 1);
    const widths = fitted(own, room, (n) => !this.columns[n]!.right);
    const padded = cells.map((whole, n) => {
      const cell = this.columns[n]!.right ? whole : cut(whole, widths[n]!);
      const space = ' '.repeat(Math.max(0, widths[n]! - widthOf(cell)));
      if (this.columns[n]!.right) return space + cell;
      return n === cells.length - 1 ? cell : cell + space;
    });
    const line = cut(padded.join(GAP).trimEnd(), this.output.columns);
    this.output.line(isTitle ? this.output.styled(line, 'bold') : line);
  }
}
