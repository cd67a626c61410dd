// Servers of other versions than the machine's own, from Debian's suites, unpacked beside the project and never installed.
//
// `node test/servers/get.mjs` fetches all of them into .cache/servers and prints where each one lies. Each folder has a
// program `redis-server`, so that a folder put in front of PATH is all that the tests need to run on that server.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { at } from '../../tools/project.mjs';

const CACHE = at('.cache', 'servers');

/**
 * The server of a Debian package is the same file as its `*-check-rdb`, which goes by the name that it is called by; the
 * packages of the servers themselves bring services that nobody wants here. `libraries` are what Debian 12 lacks, and
 * where they include libc6 the server is started by that one's loader.
 */
export const SERVERS = {
  'redis-6.0': {
    suite: 'bullseye',
    tools: 'redis-tools',
    libraries: ['libssl1.1', 'liblua5.1-0', 'lua-cjson', 'lua-bitop'],
  },
  'valkey-8.0': { suite: 'bookworm-backports', tools: 'valkey-tools', libraries: [] },
  'redis-8.0': {
    suite: 'trixie',
    tools: 'redis-tools',
    // prettier-ignore
    libraries: ['libc6', 'libatomic1', 'libcap2', 'libgcc-s1', 'libjemalloc2', 'liblzf1', 'libssl3t64', 'libstdc++6', 'libsystemd0', 'libzstd1', 'zlib1g'],
  },
};

/** @returns the folder of a server, for PATH, if it was fetched before */
export function fetchedFolder(name) {
  const programs = programsOf(join(CACHE, name));
  return existsSync(join(programs, 'redis-server')) ? programs : undefined;
}

const programsOf = (target) => join(target, 'path');

/** @returns the folder of a server, for PATH; fetches it first where it is not there yet */
export function serverFolder(name) {
  const fetched = fetchedFolder(name);
  if (fetched) return fetched;
  const target = join(CACHE, name);
  const programs = programsOf(target);
  mkdirSync(CACHE, { recursive: true });
  const scratch = mkdtempSync(join(CACHE, 'get-'));
  try {
    const { suite, tools, libraries } = SERVERS[name];
    const unpacked = join(scratch, name);
    for (const file of download(scratch, suite, [tools, ...libraries]))
      execFileSync('dpkg-deb', ['-x', file, unpacked]);
    rmSync(target, { recursive: true, force: true });
    renameSync(unpacked, target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  makeProgram(target, programs);
  return programs;
}

/** By an apt with lists, sources and a cache of its own: nothing of the machine's apt changes, nothing is installed. */
function download(scratch, suite, packages) {
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'debs']) {
    mkdirSync(join(scratch, folder), { recursive: true });
  }
  const sources = join(scratch, 'sources.list');
  writeFileSync(sources, `deb ${debianMirror()} ${suite} main\n`);
  const options = {
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
    'Dir::State': join(scratch, 'state'),
    'Dir::Cache': join(scratch, 'cache'),
    'APT::Default-Release': '',
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
  };
  const settings = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  const apt = (...args) =>
    execFileSync('apt-get', ['-qq', ...settings, ...args], {
      cwd: join(scratch, 'debs'),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  apt('update');
  apt('download', ...packages.map((name) => `${name}/${suite}`));
  return readdirSync(join(scratch, 'debs')).map((file) => join(scratch, 'debs', file));
}

/** The mirror that this machine's apt uses already, in either form of its lists. */
function debianMirror() {
  const etc = '/etc/apt';
  const parts = join(etc, 'sources.list.d');
  const files = [
    join(etc, 'sources.list'),
    ...(existsSync(parts) ? readdirSync(parts) : []).map((f) => join(parts, f)),
  ];
  for (const file of files.filter((path) => existsSync(path) && /\.(list|sources)$/.test(path))) {
    const text = readFileSync(file, 'utf8').replace(/^\s*#.*$/gm, '');
    const found = /(?:^deb\s+(?:\[[^\]]*\]\s+)?|^URIs:\s*)(\S+\/debian)\/?(?:\s|$)/m.exec(text);
    if (found) return found[1];
  }
  throw new Error('no mirror of Debian is named in /etc/apt: these servers can be had on Debian only');
}

function makeProgram(target, programs) {
  const bin = join(target, 'usr', 'bin');
  const server = join(
    bin,
    readdirSync(bin).find((name) => name.endsWith('-check-rdb')),
  );
  const library = join(target, 'usr', 'lib');
  const platform = existsSync(library) ? readdirSync(library).find((name) => name.endsWith('-linux-gnu')) : undefined;
  const folder = platform && join(library, platform);
  const loader = folder && readdirSync(folder).find((name) => /^ld-linux.*\.so/.test(name));
  const link = join(target, 'redis-server'); // not in `programs`, where a copy of the name would be found twice
  if (!loader) symlinkSync(server, link);
  const call = loader
    ? `"${join(folder, loader)}" --argv0 redis-server --library-path "${folder}" "${server}"`
    : `${folder ? `env LD_LIBRARY_PATH="${folder}" ` : ''}"${link}"`;
  mkdirSync(programs);
  // `exec` keeps the process id, by which tests tell their own server from one that took its port before.
  const program = join(programs, 'redis-server');
  writeFileSync(program, `#!/bin/sh\nexec ${call} "$@"\n`);
  chmodSync(program, 0o755);
  execFileSync(program, ['--version']);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of Object.keys(SERVERS)) {
    const folder = serverFolder(name);
    const version = execFileSync(join(folder, 'redis-server'), ['--version'], { encoding: 'utf8' });
    console.log(`${name}: ${folder} (${version.trim()})`);
  }
}
