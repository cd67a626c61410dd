import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { ActLog } from '../../dashboard/act-log.js';
import { send } from '../../dashboard/answers.js';
import { loadAssets } from '../../dashboard/assets.js';
import { dashboardHandler } from '../../dashboard/dashboard.handler.js';
import type { DashboardHandler } from '../../dashboard/dashboard.handler.js';
import { InstanceView } from '../../dashboard/instance-view.js';
import { PrivateParts } from '../../dashboard/private-parts.js';
import { DelayQueueHealth } from '../../health/delay-queue.health.js';
import type { Session } from '../connection/session.js';
import { CommandError, EXIT } from '../exit-codes.js';
import { answerAtTheDoor } from './door.js';

export interface DashboardSettings {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly names: ReadonlySet<string>;
  readonly token: string | undefined;
  readonly level: 'read' | 'write';
  /** Of payloads, and of the texts of errors, which may quote them. */
  readonly hides: boolean;
}

const NAME = 'default';
/** What all of the dashboard answers for a number of shards that is not that of the queue. */
const CONFLICT = 409;

/** The dashboard of a session over HTTP. */
export class DashboardServer {
  readonly #server: Server;
  readonly #views = new Map<string, InstanceView>();
  readonly #answering = new Set<ServerResponse>();
  readonly #log = new ActLog();
  #handler: DashboardHandler | undefined;
  #cookie = '';
  #isStale = false;

  constructor(
    private session: Session,
    private readonly settings: DashboardSettings,
  ) {
    this.#server = createServer((request, response) => {
      const { token, names } = this.settings;
      const refused = answerAtTheDoor(request, { token, names, cookie: this.#cookie });
      if (refused) return send(response, refused);
      this.#answering.add(response);
      response.once('close', () => {
        this.#answering.delete(response);
        this.#isStale ||= response.statusCode === CONFLICT;
      });
      void this.#freshen().then(() => this.#handler!(request, response, { mount: '' }));
    });
  }

  /**
   * @returns its address, with the token
   * @throws CommandError, InvalidOptionError
   */
  async listen(): Promise<string> {
    const { host, port, level } = this.settings;
    // Beside the program in the package; that of an application looks for it from a folder deeper.
    const assets = await loadAssets(join(__dirname, '..', 'dashboard'), 'dashboard');
    this.#look();
    const access = () => level;
    this.#handler = dashboardHandler({ assets, views: this.#views, access, environment: undefined, log: this.#log });
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(new CommandError(EXIT.failed, troubleOf(error, host, port))));
      this.#server.listen(port, host, resolve);
    });
    const address = this.#server.address() as AddressInfo;
    this.#cookie = `delay-queue-${address.port}`;
    return `http://${hostIn(address)}:${address.port}/`;
  }

  /** Takes no more connections, and waits for the answers that are asked for: not for connections, which browsers also open in advance. */
  async close(): Promise<void> {
    this.#server.close();
    await Promise.all([...this.#answering].map((response) => once(response, 'close')));
  }

  #look(): void {
    const { context, inspector, producer } = this.session;
    const shown = this.settings.hides ? 'hide' : 'show';
    const privateParts = new PrivateParts(shown, shown, (what, thrown, payload) =>
      this.#log.fault(what, thrown, payload),
    );
    const health = new DelayQueueHealth(context, () => undefined);
    this.#views.set(NAME, new InstanceView({ name: NAME, context, inspector, health, producer }, privateParts));
  }

  /** It lives long: meanwhile queues are made, or get another number of shards. Looked at when an answer was that this happened. */
  async #freshen(): Promise<void> {
    if (!this.#isStale) return;
    this.#isStale = false;
    const next = await this.session.again().catch(() => undefined);
    if (!next) return;
    this.session = next;
    this.#look();
  }
}

function hostIn({ address }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return '127.0.0.1';
  return isIPv6(address) ? `[${address}]` : address;
}

function troubleOf({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `Port ${port} is taken. Give another one with --port, or 0 for any that is free.`;
  return `--host ${host}, --port ${port}: ${message}`;
}
