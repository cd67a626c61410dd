import { readFileSync } from 'node:fs';
import { Option } from 'commander';
import type { Command } from 'commander';
import { resolveEnqueueOptions } from '../../job/enqueue-options.js';
import type { EnqueueOptions, OnDuplicate } from '../../job/enqueue-options.js';
import { wallClock } from '../../time-and-randomness.js';
import { action } from '../cli.js';
import { EXIT, usage } from '../exit-codes.js';
import { asFlags } from '../terminal/flag-names.js';
import { countOf } from '../terminal/numbers.js';
import { losesDigits } from './lost-digits.js';

interface Flags {
  delay?: string;
  at?: string;
  id?: string;
  onDuplicate?: OnDuplicate;
  attempts?: string;
  expiresIn?: string;
  group?: string;
  priority?: string;
}

// An id that arrives as another id is worse than one that is refused. The number itself is part of the payload, and so not quoted.
const TOO_MANY_DIGITS =
  'payload: holds a whole number beyond 9007199254740991 that would lose digits. Send it as text, in quotes.';
const ON_DUPLICATE = ['keep', 'replace', 'reschedule', 'reject'] as const;

export function addEnqueue(program: Command): void {
  program
    .command('enqueue')
    .argument('<queue>')
    .argument('<payload>', 'JSON, @file, or - for stdin')
    .description('makes a job')
    .option('--delay <duration>', 'due so long from now')
    .option('--at <time>', 'due at this moment')
    .option('--id <id>', 'instead of a new one')
    .addOption(new Option('--on-duplicate <what>', 'when the id is in use').choices(ON_DUPLICATE))
    .option('--attempts <n>', 'runs that may fail')
    .option('--expires-in <duration>', 'how late it may start')
    .option('--group <group>')
    .option('--priority <n>', '0 to 9')
    .action(
      action(async (cli, flags: Flags, queue: string, text: string) => {
        const moment = flags.at === undefined ? undefined : cli.times.moment(flags.at, '--at');
        const options = optionsOf(flags);
        resolveEnqueueOptions({ ...options, ...(moment && { at: moment.at(wallClock()) }) }, queue, asFlags);
        const payload = parsed(await textOf(text));
        const session = await cli.connect([], [queue]);
        const at = moment && { at: moment.at(await session.now()) };
        const result = await session.producer.enqueue(queue, payload, { ...at, ...options });
        const { id, outcome, state, dueAt } = result;
        if (cli.out.isJson) cli.out.json(result);
        else cli.out.line([id, outcome, state, dueAt.toISOString()].map((cell) => cli.out.safe(cell)).join('\t'));
        // The job that has the id forbade it.
        return outcome === 'kept' ? EXIT.refused : EXIT.done;
      }),
    );
}

function optionsOf({ delay, id, onDuplicate, attempts, expiresIn, group, priority }: Flags): EnqueueOptions {
  const given = {
    delay,
    id,
    onDuplicate,
    attempts: attempts === undefined ? undefined : countOf(attempts, '--attempts'),
    expiresIn,
    group,
    priority: priority === undefined ? undefined : priorityOf(priority),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Number() would make 0 of no text at all. */
function priorityOf(text: string): number {
  if (!/^\d$/.test(text)) throw usage(`--priority: "${text}" is not a whole number from 0 to 9.`);
  return Number(text);
}

async function textOf(text: string): Promise<string> {
  if (text === '-') return (await process.stdin.setEncoding('utf8').toArray()).join('');
  if (!text.startsWith('@')) return text;
  try {
    return readFileSync(text.slice(1), 'utf8');
  } catch (error) {
    throw usage(`payload: ${(error as Error).message}`);
  }
}

function parsed(text: string): unknown {
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch {
    // The parser quotes its input, and that is the payload.
    throw usage(
      `payload: is not JSON. Text is '"text"', with quotes of both kinds; @file and - read it from elsewhere.`,
    );
  }
  if (losesDigits(text)) throw usage(TOO_MANY_DIGITS);
  return payload;
}
