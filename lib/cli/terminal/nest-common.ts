// Stands for @nestjs/common in the bundle, so that a command starts without loading Nest: the library needs of it nothing but the
// logger here. What it logs, warnings of the server and the connection, goes to stderr.
import { escaped } from './escape.js';

export class Logger {
  /** Does it tell what is done, beside what goes wrong? Only where a command runs long and others have it act. */
  static reports = false;

  static isLevelEnabled(): boolean {
    return false;
  }

  log(message: string): void {
    if (Logger.reports) process.stderr.write(`${escaped(message)}\n`);
  }

  debug(): void {}

  warn(message: string): void {
    process.stderr.write(`warning: ${escaped(message)}\n`);
  }

  error(message: string): void {
    process.stderr.write(`warning: ${escaped(message)}\n`);
  }
}

export class ConsoleLogger extends Logger {
  stringifyParams(): void {}
}
