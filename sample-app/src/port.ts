const DEFAULT_PORT = 3000;
const MAX_PORT = 65_535;

/** @throws when it is no port. Number('') is 0 and would silently mean "any free port", so that counts as left out. */
export function readPort(text: string | undefined): number {
  if (!text) return DEFAULT_PORT;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= MAX_PORT) return port;
  throw new Error(`PORT is "${text}"; it must be a whole number from 0 (any free port) to ${MAX_PORT}.`);
}
