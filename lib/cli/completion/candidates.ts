import type { Command, Option } from 'commander';

/** What may come next on a line: words, and perhaps the name of a queue, for which Redis has to be asked. */
export interface Candidates {
  readonly words: readonly string[];
  readonly queues: boolean;
}

/** Arguments that name a queue that is there. */
const QUEUES = ['queue', 'target'];

/** @param words behind the name of the program; the last one is the one that is being typed, and may be empty */
export function candidatesOf(program: Command, words: readonly string[]): Candidates {
  const typed = words.at(-1) ?? '';
  let command = program;
  let wantsValue: Option | undefined;
  let position = 0;
  for (const word of words.slice(0, -1)) {
    if (wantsValue) wantsValue = undefined;
    else if (word.startsWith('-') && word !== '-') {
      const option = optionsOf(command).find(({ long, short }) => long === word || short === word);
      wantsValue = option?.required ? option : undefined;
    } else {
      const child = command.commands.find((one) => one.name() === word);
      if (child) [command, position] = [child, 0];
      else position++;
    }
  }
  if (wantsValue) return beginning(typed, wantsValue.argChoices ?? []);
  if (typed.startsWith('-')) return beginning(typed, optionsOf(command).flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))); // prettier-ignore
  if (command.commands.length > 0) return beginning(typed, namesOf(command));
  const argument = command.registeredArguments[position];
  const isQueue = argument !== undefined && QUEUES.includes(argument.name());
  return { ...beginning(typed, argument?.argChoices ?? []), queues: isQueue };
}

function beginning(typed: string, words: readonly string[]): Candidates {
  return { words: words.filter((word) => word.startsWith(typed)), queues: false };
}

/** Without those that are for programs. */
function namesOf(command: Command): string[] {
  return command.commands.map((child) => child.name()).filter((name) => !name.startsWith('__'));
}

/** Its own, and those that hold for all commands. */
function optionsOf(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent ? optionsOf(command.parent) : [])];
}
