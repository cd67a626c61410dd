import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['.', 'bench'];

interface LockedPackage {
  readonly optionalDependencies?: Record<string, string>;
}

it.each(FOLDERS)('the lock file in %s names the packages of every platform, or npm ci refuses it on all', (folder) => {
  const lockFile = fileURLToPath(new URL(`../../${folder}/package-lock.json`, import.meta.url));
  const { packages } = JSON.parse(readFileSync(lockFile, 'utf8')) as { packages: Record<string, LockedPackage> };
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !packages[`node_modules/${name}`] && !packages[`${path}/node_modules/${name}`],
    ),
  );
  expect(missing).toEqual([]);
});
