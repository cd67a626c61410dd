import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Path of a file of this project. */
export const at = (...parts) => join(ROOT, ...parts);
