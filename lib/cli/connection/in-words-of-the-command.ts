import { InvalidDelayError, InvalidOptionError, UnavailableError } from '../../delay-queue.errors.js';

const OF_OPTION = /^forRoot\(\{ name: "\w+", (\w+) \}\)/;

/**
 * Who calls a command has no `forRoot()` to correct: what the library says of it becomes what was typed.
 *
 * @param server the flag that names the server
 */
export function inWordsOfTheCommand(error: unknown, server: '--redis' | '--from-redis'): unknown {
  if (error instanceof InvalidOptionError || error instanceof InvalidDelayError) {
    error.message = error.message.replace(OF_OPTION, (field, option: string) => flagOf(option, server) ?? field);
  }
  if (!(error instanceof UnavailableError)) return error;
  const environment = server === '--redis' ? ', or DELAY_QUEUE_REDIS' : '';
  const message = error.message
    .replace('within connectTimeout (', 'within --timeout (')
    .replace(/(?:give|correct) `connection`.*$/, `or correct ${server}${environment}.`);
  return new UnavailableError(message, { cause: error.cause });
}

function flagOf(option: string, server: string): string | undefined {
  if (option === 'connection') return server;
  if (option === 'prefix') return '--prefix';
  return option === 'connectTimeout' || option === 'commandTimeout' ? '--timeout' : undefined;
}
