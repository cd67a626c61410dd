/** Empties the queues of promises and of nextTick(). In a microtask, inside of which no other one runs, it does nothing. */
const drain = (process as unknown as { _tickCallback: () => void })._tickCallback;

/**
 * Takes one event after the other in one turn of the real event loop, and empties Node's own queues after each, as Node does it.
 *
 * What is thrown in such a queue ends a real process. Here it is told, and the events go on in a turn of their own. The present one
 * must end by it: only Node's own way with what nobody catches tidies its stack of asynchronous contexts, and one that is left untidy
 * aborts everything.
 *
 * @param next takes an event. @returns false when there is none left
 */
export function inOneTurn(next: () => boolean, threw: (error: unknown) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let isDraining = false;
    const empty = () => {
      isDraining = true;
      drain();
      isDraining = false;
    };
    const turn = () => {
      try {
        empty();
        while (next()) empty();
        resolve();
      } catch (error) {
        if (!isDraining) return reject(error as Error);
        threw(error);
        process.once('uncaughtException', () => setImmediate(turn));
        throw error;
      }
    };
    setImmediate(turn);
  });
}
