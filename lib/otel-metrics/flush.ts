import type { MeterProvider } from '@opentelemetry/api';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';

/** An exporter whose backend is away must not hold the end of a process up. */
const LIMIT_MS = 2_000;

/** Exports what was counted since the last export, which would be lost with the process. Never rejects. */
export async function flush(provider: MeterProvider | undefined): Promise<void> {
  const { forceFlush } = (provider ?? {}) as { forceFlush?: () => Promise<void> };
  if (typeof forceFlush !== 'function') return;
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LIMIT_MS);
  });
  const flushed = async () => forceFlush.call(provider);
  // The SDK tells of exports that fail.
  await Promise.race([flushed().catch(() => {}), limit]);
  clearTimeout(timer);
}
