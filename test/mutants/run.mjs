// npm run test:mutants: breaks the library on purpose, one defect at a time, and fails when the tests do not notice.
//
// Each .patch in this folder starts with lines of prose that say which guarantee it breaks, and one line
//   specs: path [path ...]   (optionally followed by: -t "part of a test's name")
// The defect is applied to a copy of the project, the copy is built, and the named specs must fail there.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const project = dirname(dirname(folder));
const LIMIT_MS = 300_000;
const copy = mkdtempSync(join(tmpdir(), 'delay-queue-mutants-'));
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: project, encoding: 'utf8' })
  .trim()
  .split('\n');
for (const file of files) {
  try {
    cpSync(join(project, file), join(copy, file));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error; // Deleted but still known to git.
  }
}
symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'));
execFileSync('git', ['init', '-q'], { cwd: copy });

function readMutant(name) {
  const text = readFileSync(join(folder, name), 'utf8');
  const line = /^specs: (.+)$/m.exec(text)?.[1];
  if (!line) throw new Error(`${name} does not name its specs`);
  const [paths, title] = line.split(/\s+-t\s+/);
  return { name, text, specs: paths.trim().split(/\s+/), title: title?.replace(/^"|"$/g, '') };
}

function apply(name, reverse) {
  execFileSync('git', ['apply', '--recount', ...(reverse ? ['-R'] : []), join(folder, name)], { cwd: copy });
}

function prepare() {
  execFileSync(process.execPath, ['lib/lua/generate.mjs'], { cwd: copy });
  execFileSync(process.execPath, ['tools/build.mjs'], { cwd: copy, stdio: 'pipe' });
}

/** True when every named spec passes. */
function passes({ specs, title }) {
  return new Promise((resolve) => {
    const args = [
      '--experimental-vm-modules',
      'node_modules/jest/bin/jest.js',
      '--forceExit',
      ...specs,
      ...(title ? ['-t', title] : []),
    ];
    const child = spawn(process.execPath, args, {
      cwd: copy,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, FORCE_COLOR: '0' },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ passed: code === 0, ran: /Tests: +.*\d+ (passed|failed)/.test(output), output });
    });
  });
}

const wanted = process.argv.slice(2);
const mutants = readdirSync(folder)
  .filter((name) => name.endsWith('.patch') && (wanted.length === 0 || wanted.some((part) => name.includes(part))))
  .sort()
  .map(readMutant);
let survivors = 0;
for (const mutant of mutants) {
  const since = Date.now();
  apply(mutant.name, false);
  let verdict;
  try {
    prepare();
    const { passed, ran, output } = await passes(mutant);
    verdict = passed ? 'SURVIVED' : ran ? 'found' : `BROKEN (no test ran)\n${output.slice(-2000)}`;
  } catch (error) {
    verdict = `BROKEN (does not build): ${String(error.stdout ?? error.message).slice(0, 500)}`;
  }
  apply(mutant.name, true);
  if (verdict !== 'found') survivors++;
  console.log(`${verdict.padEnd(9)} ${((Date.now() - since) / 1000).toFixed(1).padStart(6)} s  ${mutant.name}`);
}
console.log(`${mutants.length - survivors} of ${mutants.length} defects were found by the tests that name them.`);
process.exitCode = survivors === 0 && mutants.length > 0 ? 0 : 1;
