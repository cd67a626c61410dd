import path from 'node:path';
import type { Build } from './fleet.js';

/** The folder with the build: older.mjs makes an older one. */
export function projectOf(project: string, build: Build): string {
  return build === 'older' ? path.join(project, 'dist-older') : project;
}
