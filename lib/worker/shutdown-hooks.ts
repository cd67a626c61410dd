import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';

const WAIT_MS = 5_000;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Without `app.enableShutdownHooks()` a SIGTERM runs no hook at all: nothing drains, and jobs wait for their leases to end.
 * Nest does not tell whether it was called, but it listens for the signals when it was. Asked a while after bootstrap,
 * because the call may come after `init()`. The library never installs signal handlers of its own.
 *
 * @param waitMs for `app.enableShutdownHooks()`
 * @returns ends the watch
 */
export function watchForShutdownHooks(logger: DelayQueueLogger, waitMs = WAIT_MS): () => void {
  const timer = setTimeout(() => {
    if (SIGNALS.some((signal) => process.listenerCount(signal) > 0)) return;
    logger.warn(
      'Nobody listens for SIGTERM: call app.enableShutdownHooks(), or running jobs are cut off at each deployment and ' +
        'wait until their lease ends. (shutdownHooksWarning: false ends this warning.)',
    );
  }, waitMs);
  timer.unref();
  return () => clearTimeout(timer);
}
