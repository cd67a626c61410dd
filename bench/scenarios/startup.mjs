// How long an application with many handlers takes to find them. Ours alone: the peers have no discovery of their own.
import { handlerClass, startApp } from '../libraries/ours.mjs';
import { HandlerExplorer } from '../../dist-modules/esm/handlers/handler.explorer.js';

const PER_CLASS = 10;

export default async function startup({ url, space, handlers }) {
  let discoveryMs = 0;
  const { prototype } = HandlerExplorer;
  const original = Object.getOwnPropertyDescriptor(prototype, 'explore').value;
  prototype.explore = async function (...args) {
    const since = performance.now();
    const found = await original.apply(this, args);
    discoveryMs += performance.now() - since;
    if (found.handlers.length !== handlers) throw new Error(`${found.handlers.length} handlers found of ${handlers}`);
    return found;
  };
  const providers = Array.from({ length: Math.ceil(handlers / PER_CLASS) }, (_, n) => {
    const queues = Array.from({ length: PER_CLASS }, (__, i) => `queue.${n}.${i}`).slice(0, handlers - n * PER_CLASS);
    return handlerClass(queues, 10, () => {});
  });
  const since = performance.now();
  const app = await startApp({ url, space, consume: true, providers });
  const bootMs = performance.now() - since;
  await app.close();
  return { discoveryMs, bootMs };
}
