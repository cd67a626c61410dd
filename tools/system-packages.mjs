// Redis, and for some tests a browser and brokers, from the packages of Debian or Ubuntu, for a machine that has nothing but Node and npm, such as a
// CI image.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { run } from './run-command.mjs';

const MACHINE = {
  isRoot: process.getuid?.() === 0,
  isDebian: existsSync('/etc/debian_version'),
  servicePolicy: '/usr/sbin/policy-rc.d',
};

/** Installs redis-server; throws where that cannot be done. */
export function installRedisServer(options) {
  return installPackages(['redis-server'], options);
}

/** Installs packages whose services shall not run; throws where that cannot be done. */
export async function installPackages(names, { env = process.env, signal, machine = MACHINE } = {}) {
  const list = names.join(', ');
  if (!machine.isDebian) throw new Error('this is neither Debian nor Ubuntu, so nothing was installed');
  if (!machine.isRoot) throw new Error(`only root may install ${list}, so nothing was installed`);
  console.error(`Installing ${list} from the system's packages`);
  const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_SUSPEND: '1' }, signal };
  const patience = ['-o', 'DPkg::Lock::Timeout=120'];
  await withoutStartingServices(machine.servicePolicy, async () => {
    await run('apt-get', ['update', '-q'], options);
    await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...patience, ...names], options);
  });
}

/** The package would start a server of its own on port 6379, and it would stay. */
async function withoutStartingServices(policyFile, install) {
  const ours = !existsSync(policyFile);
  if (ours) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    await install();
  } finally {
    if (ours) rmSync(policyFile, { force: true });
  }
}
