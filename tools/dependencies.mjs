// Installs what package-lock.json names, unless it is there already.
import { readFileSync } from 'node:fs';
import { npm } from './run-command.mjs';
import { at } from './project.mjs';

/** @param {{ signal?: AbortSignal }} [options] */
export async function installDependencies({ signal } = {}) {
  if (areInstalled()) return;
  console.error('Installing the dependencies (npm ci)');
  // Development dependencies too, whatever NODE_ENV says: the build needs them.
  await npm(['ci', '--include=dev', '--no-audit', '--no-fund'], { cwd: at(), signal });
}

/**
 * npm writes what it installed into node_modules at the very end, so that a half-way installation does not count.
 * Versions are compared, not times: a checkout touches the lock file without changing it.
 */
function areInstalled() {
  const wanted = packagesOf(at('package-lock.json'));
  const present = packagesOf(at('node_modules', '.package-lock.json'));
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
