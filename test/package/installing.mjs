// How the tests of the package get what its users get: a tarball, installed in an application.
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../tools/project.mjs';
import { npm } from '../../tools/run-command.mjs';

/** @returns {Promise<string>} the path of the tarball */
export async function pack(destination) {
  await npm(['pack', '--silent', '--pack-destination', destination], { cwd: at() });
  return join(
    destination,
    readdirSync(destination).find((file) => file.endsWith('.tgz')),
  );
}

/** @param {string} parent  @param {string} folder in test/package  @returns {Promise<string>} the folder of the application */
export async function install(parent, folder, manifest) {
  const cwd = join(parent, manifest.name);
  mkdirSync(cwd);
  cpSync(at('test', 'package', folder), cwd, { recursive: true });
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest, null, 2));
  await npm(['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], { cwd });
  return cwd;
}

/** On a server of somebody's, which outlives the run. */
export async function removeKeys(url, prefix) {
  const { Redis } = await import('ioredis');
  const client = new Redis(url);
  for await (const keys of client.scanStream({ match: `${prefix}*` }))
    if (keys.length > 0) await client.unlink(...keys);
  client.disconnect();
}
