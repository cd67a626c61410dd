import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';

const WAIT_MS = 5_000;

/**
 * An application that was created and never initialised enqueues as well as any other, and runs nothing: Nest has called no hook of
 * it. It takes note of what is sent before that, and looks again later, because the boot may still be on its way.
 */
export class InitWatch {
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  /** @param waitMs for the boot */
  constructor(
    private readonly logger: DelayQueueLogger,
    private readonly waitMs = WAIT_MS,
  ) {}

  /** Something is sent to this queue. */
  sends(queue: string): void {
    if (this.#isOver || this.#timer) return;
    const seconds = Math.round(this.waitMs / 1_000);
    this.#timer = setTimeout(() => {
      this.logger.warn(
        `Queue "${queue}" was used ${seconds} s ago, and the application is still not initialised, so no job runs here: call and ` +
          'await app.init() or app.listen(). NestFactory.create(), compile() and startAllMicroservices() do not do it.',
      );
    }, this.waitMs).unref();
  }

  /** The application is initialised, or closes. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}
