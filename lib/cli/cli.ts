import type { Command } from 'commander';
import { moduleOptions } from './connection/connection-flags.js';
import type { ConnectionFlags } from './connection/connection-flags.js';
import type { Session } from './connection/session.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { Interruption } from './terminal/interruption.js';
import { Output } from './terminal/output.js';
import { Times } from './terminal/times.js';
import { DelayQueueError } from '../delay-queue.errors.js';

export interface GlobalOptions extends ConnectionFlags {
  readonly json?: boolean;
  readonly utc?: boolean;
  readonly color?: boolean;
}

/** What a command works with: made for each run of the program, once it knows which command is meant. */
export class Cli {
  readonly out: Output;
  readonly times: Times;
  readonly interruption = new Interruption();
  readonly options: GlobalOptions;
  #session: Session | undefined;

  constructor(private readonly command: Command) {
    this.options = command.optsWithGlobals<GlobalOptions>();
    const { json = false, utc = false, color = true } = this.options;
    const { NO_COLOR, TERM } = process.env;
    const colored = color && !NO_COLOR && TERM !== 'dumb' && process.stdout.isTTY === true && !json;
    this.out = new Output({ json, color: colored });
    this.times = new Times(utc);
  }

  /**
   * @param queues what the command is about; all when it is left out
   * @param making queues that the command may make
   * @throws CommandError for a queue that was never used
   */
  async connect(queues?: readonly string[], making: readonly string[] = []): Promise<Session> {
    const isFlag = (name: string) => this.command.getOptionValueSourceWithGlobals(name) === 'cli';
    const options = await moduleOptions(this.options, isFlag);
    // Only now: a program that has to say how it is used loads neither the library nor the driver.
    const { Session } = await import('./connection/session.js');
    const session = (this.#session = await Session.open(options, queues && [...queues, ...making]));
    for (const queue of queues ?? []) session.known(queue);
    return session;
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }
}

type Handler<Args extends unknown[], Options> = (cli: Cli, options: Options, ...args: Args) => Promise<number | void>;

/** Makes an action of a command: what it throws becomes a sentence and an exit code. */
export function action<Args extends unknown[], Options = object>(handler: Handler<Args, Options>) {
  return async (...given: unknown[]): Promise<void> => {
    const command = given.pop() as Command;
    const options = given.pop() as Options;
    const cli = new Cli(command);
    cli.interruption.listen();
    let code: number = EXIT.done;
    try {
      code = (await handler(cli, options, ...(given as Args))) ?? EXIT.done;
    } catch (error) {
      cli.out.error((error as Error).message, error instanceof DelayQueueError ? error.code : undefined);
      code = exitCodeOf(error);
    }
    await cli.close().catch(() => undefined);
    end(cli.interruption.happened ? EXIT.interrupted : code);
  };
}

/** After what was written has left: a pipe takes it by and by. */
function end(code: number): void {
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}
