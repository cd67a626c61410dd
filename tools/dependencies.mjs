// Installs what package-lock.json names, unless it is there already.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { npm } from './run-command.mjs';
import { at } from './project.mjs';

/** @param {{ signal?: AbortSignal, folder?: string }} [options] a folder with a package.json; the project's own by default */
export async function installDependencies({ signal, folder = at() } = {}) {
  if (areInstalled(folder)) return;
  console.error(`Installing the dependencies${folder === at() ? '' : ` of ${basename(folder)}`} (npm ci)`);
  // Development dependencies too, whatever NODE_ENV says: the build needs them.
  await npm(['ci', '--include=dev', '--no-audit', '--no-fund'], { cwd: folder, signal });
}

/**
 * npm writes what it installed into node_modules at the very end, so that a half-way installation does not count.
 * Versions are compared, not times: a checkout touches the lock file without changing it.
 */
function areInstalled(folder) {
  const wanted = packagesOf(join(folder, 'package-lock.json'));
  const present = packagesOf(join(folder, 'node_modules', '.package-lock.json'));
  return Object.entries(wanted).every(
    ([path, { version, optional, devOptional }]) =>
      path === '' || present[path]?.version === version || (!present[path] && (optional || devOptional)),
  );
}

function packagesOf(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, 'utf8')).packages;
  } catch {
    return {};
  }
}
