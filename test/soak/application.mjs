import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./program.mjs', import.meta.url));
const ANSWER_MS = 60_000;

/** The application that is watched, in a process of its own that ends with the tether. */
export class Application {
  #child;

  static async start(tether, settings) {
    const child = await tether.spawn(process.execPath, ['--expose-gc', PROGRAM], {
      env: { ...process.env, NODE_OPTIONS: '', SOAK: JSON.stringify(settings) },
      channel: true,
    });
    const application = new Application(child);
    await application.#says('ready');
    return application;
  }

  constructor(child) {
    this.#child = child;
  }

  /** @param {'sample' | 'finish'} what */
  async ask(what) {
    const answer = this.#says(what);
    this.#child.send({ [what]: true });
    return answer;
  }

  /** Stops the load, waits until the queues are empty, and ends the process. @returns what it did */
  async finish() {
    const counts = await this.ask('finish');
    this.#child.kill('SIGTERM');
    const { code, signal } = await this.#child.exited;
    // By its own signal once more, after the shutdown hooks of Nest.
    if (code !== 0 && signal !== 'SIGTERM') throw new Error(`the application ended with ${signal ?? code}`);
    return counts;
  }

  #says(word) {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const listen = ({ message }) => {
        if (!(word in message)) return;
        end();
        resolve(message[word]);
      };
      const timer = setTimeout(() => fail(`did not say "${word}" within ${ANSWER_MS} ms`), ANSWER_MS);
      const gone = ({ code, signal }) => fail(`ended with ${signal ?? code}`);
      const end = () => {
        clearTimeout(timer);
        child.off('message', listen);
        child.off('exit', gone);
      };
      const fail = (problem) => {
        end();
        reject(new Error(`the application ${problem}`));
      };
      child.on('message', listen);
      child.on('exit', gone);
    });
  }
}
