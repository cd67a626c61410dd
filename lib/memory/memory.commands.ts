import type { Command, CommandContext } from './commands/command.js';
import { HASH_COMMANDS } from './commands/hash.commands.js';
import { KEY_COMMANDS } from './commands/key.commands.js';
import { LIST_COMMANDS } from './commands/list.commands.js';
import { SET_COMMANDS } from './commands/set.commands.js';
import { STRING_COMMANDS } from './commands/string.commands.js';
import { STREAM_COMMANDS } from './commands/stream.commands.js';
import { SORTED_SET_COMMANDS } from './commands/sorted-set.commands.js';
import { ReplyError } from './memory.replies.js';
import type { Reply } from './memory.replies.js';

/** The commands that the scripts, the library and its tests use, and those that stand next to them. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries({
    ...KEY_COMMANDS,
    ...STRING_COMMANDS,
    ...HASH_COMMANDS,
    ...SET_COMMANDS,
    ...LIST_COMMANDS,
    ...SORTED_SET_COMMANDS,
    ...STREAM_COMMANDS,
  }),
);

/** @throws ReplyError */
export function runCommand(context: CommandContext, name: string, args: readonly string[]): Reply {
  const command = COMMANDS.get(name) ?? COMMANDS.get(name.toUpperCase());
  if (!command) throw new ReplyError(`ERR unknown command '${name}' of a memory:// store`);
  if (args.length < command.least || args.length > (command.most ?? Infinity)) {
    throw new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
  }
  return command.run(context, args);
}
