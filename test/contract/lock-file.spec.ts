import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LOCK_FILE = fileURLToPath(new URL('../../package-lock.json', import.meta.url));

interface LockedPackage {
  readonly optionalDependencies?: Record<string, string>;
}

it('package-lock.json names the packages of every platform, without which npm ci refuses it on all of them', () => {
  const { packages } = JSON.parse(readFileSync(LOCK_FILE, 'utf8')) as { packages: Record<string, LockedPackage> };
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !packages[`node_modules/${name}`] && !packages[`${path}/node_modules/${name}`],
    ),
  );
  expect(missing).toEqual([]);
});
