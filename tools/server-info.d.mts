/** Resolves with `{ version, pid }` once the server at this address serves. */
export function untilServing(
  port: number,
  options?: { host?: string; timeoutMs?: number; given?: () => boolean },
): Promise<{ version?: string; pid?: number }>;
