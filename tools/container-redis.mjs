// A private Redis in a container, with the same handle as a local one.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { untilServing } from './server-info.mjs';

const PROGRAM = fileURLToPath(new URL('./container-process.mjs', import.meta.url));
const DEFAULT_IMAGE = 'redis:7.0';

/** Why a container could not be had; `noEngine` tells the reason from a missing image. */
export class ContainerUnavailable extends Error {
  constructor(message, noEngine) {
    super(message);
    this.noEngine = noEngine;
  }
}

export function imageName(env = process.env) {
  return env.REDIS_IMAGE || DEFAULT_IMAGE;
}

/** @param {{ image: string, flags?: string[], pullTimeoutMs: number }} options */
export async function startContainerRedis(tether, { image, flags = [], pullTimeoutMs }) {
  const keeper = await tether.spawn(process.execPath, [PROGRAM, JSON.stringify({ image, flags, pullTimeoutMs })], {
    channel: true,
  });
  const answer = await answerOf(keeper);
  if (answer.failed) throw new ContainerUnavailable(answer.failed, answer.noEngine);
  const server = new ContainerRedis(keeper, image, answer);
  await server.untilReady();
  return server;
}

class ContainerRedis {
  kind = 'container';
  #keeper;
  #image;
  #host;
  #running = true;

  constructor(keeper, image, { url, host, port }) {
    this.#keeper = keeper;
    this.#image = image;
    this.#host = host;
    this.url = url;
    this.port = port;
  }

  /** Sends a signal to the server; one that ends it is awaited. To a server that was ended before it is nothing. */
  async kill(signal = 'SIGKILL') {
    if (!this.#running) return;
    await this.#order({ order: 'kill', signal });
    if (!['SIGSTOP', 'SIGCONT'].includes(signal)) this.#running = false;
  }

  /** Ends the server if it still runs and starts it again on the same port, over the same data. */
  async restart() {
    if (this.#running) await this.kill('SIGTERM');
    await this.#order({ order: 'start' });
    this.#running = true;
    await this.untilReady();
  }

  async untilReady() {
    const { version } = await untilServing(this.port, { host: this.#host });
    this.description = `a container of ${this.#image}${version ? `, version ${version}` : ''}, through testcontainers`;
  }

  async #order(order) {
    this.#keeper.send(order);
    const { failed } = await answerOf(this.#keeper);
    if (failed) throw new Error(`container of ${this.#image}, ${order.order}: ${failed}`);
  }
}

async function answerOf(keeper) {
  const ended = keeper.exited.then(() => [{ message: { failed: 'the process that keeps the container ended' } }]);
  const [{ message }] = await Promise.race([once(keeper, 'message'), ended]);
  return message;
}
