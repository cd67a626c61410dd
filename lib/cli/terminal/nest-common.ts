// Stands for @nestjs/common in the bundle, so that a command starts without loading Nest: the library needs of it nothing but the
// logger here. What it logs, warnings of the server and the connection, goes to stderr.
import { escaped } from './escape.js';

export class Logger {
  static isLevelEnabled(): boolean {
    return false;
  }

  log(): void {}

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
