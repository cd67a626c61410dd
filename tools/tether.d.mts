export interface TetheredProcess {
  on(event: 'message', listener: (details: { message: any }) => void): unknown;
  readonly pid: number;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal?: NodeJS.Signals): void;
  signal(signal: NodeJS.Signals): Promise<void>;
  send(message: object): void;
}

export class Tether {
  static open(): Promise<Tether>;
  readonly directory: string;
  spawn(
    command: string,
    args: string[],
    options?: {
      env?: NodeJS.ProcessEnv;
      cwd?: string;
      log?: string;
      channel?: boolean;
      stopSignal?: NodeJS.Signals;
    },
  ): Promise<TetheredProcess>;
  close(): Promise<void>;
}
