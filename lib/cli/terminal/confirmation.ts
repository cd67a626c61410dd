import { createInterface } from 'node:readline/promises';
import { CommandError, EXIT, usage } from '../exit-codes.js';
import { escaped } from './escape.js';

export interface Confirmation {
  readonly question: string;
  /** What has to be typed. Default `y`. */
  readonly word?: string;
  readonly yes: boolean | undefined;
}

/** @throws CommandError unless the user, or `--yes`, says so */
export async function confirm({ question, word, yes }: Confirmation): Promise<void> {
  if (yes) return;
  // Ids may have been typed there, until its end.
  if (!process.stdin.isTTY || process.stdin.readableEnded || !process.stderr.isTTY) {
    throw usage(
      `${question} Nobody can be asked without a terminal: give --yes, or --dry-run to see what it would do.`,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const left = new Promise<never>((_, reject) => {
    terminal.once('SIGINT', () => reject(new CommandError(EXIT.interrupted, 'Interrupted; nothing was done.')));
    // Ctrl D, which the question itself never hears of.
    terminal.once('close', () => reject(notConfirmed()));
  });
  try {
    const how = word === undefined ? '[y/N]' : `Type ${escaped(word)} to go on:`;
    const answer = (await Promise.race([terminal.question(`${escaped(question)} ${how} `), left])).trim();
    const isMeant = word === undefined ? /^y(?:es)?$/i.test(answer) : answer === word;
    if (!isMeant) throw notConfirmed();
  } finally {
    terminal.close();
  }
}

function notConfirmed(): CommandError {
  return new CommandError(EXIT.failed, 'Not confirmed; nothing was done.');
}
