import { Argument } from 'commander';
import type { Command } from 'commander';
import type { GlobalOptions } from '../cli.js';
import { moduleOptions } from '../connection/connection-flags.js';
import { action } from '../cli.js';
import { candidatesOf } from './candidates.js';

type Shell = 'bash' | 'zsh' | 'fish';

// What completes is quoted by the shell and never evaluated: anybody who enqueues may choose the name of a queue.
const SCRIPTS: Record<Shell, string> = {
  bash: `_nestjs_delay_queue() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$(printf '%q' "$word")"); done \\
    < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _nestjs_delay_queue nestjs-delay-queue delay-queue`,
  zsh: `_nestjs_delay_queue() {
  local -a found
  found=("\${(@f)$("\${(Q)words[1]}" __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
}
compdef _nestjs_delay_queue nestjs-delay-queue delay-queue`,
  fish: `function __nestjs_delay_queue
  set -l words (commandline -opc)
  $words[1] __complete -- $words[2..] (commandline -ct) 2>/dev/null
end
complete -c nestjs-delay-queue -f -a '(__nestjs_delay_queue)'
complete -c delay-queue -f -a '(__nestjs_delay_queue)'`,
};
/** Nobody waits longer for the names of queues. */
const PATIENCE = '300ms';

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>').choices(Object.keys(SCRIPTS)))
    .description('a script for the shell, which completes commands, options and queues')
    .action(action(async (cli, _: object, shell: Shell) => cli.out.line(SCRIPTS[shell])));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(
      action(async (cli, _: object, words: string[]) => {
        const { words: found, queues } = candidatesOf(program, words);
        for (const word of found) cli.out.line(word);
        if (queues) for (const name of await queueNames(program, words)) cli.out.line(cli.out.safe(name));
      }),
    );
}

/** Silence where Redis does not answer: a line that is typed must not wait, nor be written over. */
async function queueNames(program: Command, words: readonly string[]): Promise<string[]> {
  const typed = words.at(-1) ?? '';
  try {
    const { Session } = await import('../connection/session.js');
    const options = await moduleOptions({ ...flagsIn(program, words), timeout: PATIENCE }, () => true);
    const session = await Session.open(options, []);
    await session.close();
    return session.names.filter((name) => name.startsWith(typed));
  } catch {
    return [];
  }
}

/** Which server the line that is typed means. */
function flagsIn(program: Command, words: readonly string[]): GlobalOptions {
  const flags: Record<string, unknown> = { ...program.opts() };
  for (const [n, word] of words.entries()) {
    const option = program.options.find(({ long, required }) => long === word && required);
    if (option && words[n + 1] !== undefined) flags[option.attributeName()] = words[n + 1];
  }
  return flags as unknown as GlobalOptions;
}
