// npm run test:mutants: breaks the library on purpose, one defect at a time, and fails when the tests do not notice.
//
// Each .patch in this folder starts with lines of prose that say which guarantee it breaks, and one line
//   specs: path [path ...]   (optionally followed by: -t "part of a test's name")
// A second line `model: yes` says that the model (test/model) finds it, too, within one run of its first part: that is tried
// as a mutant of its own, whose name begins with `model-`.
// The defect is applied to a copy of the project and the named specs must fail there. The copy is built only for specs
// that start processes, which load the built package. Arguments choose mutants by parts of their names.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const project = dirname(dirname(folder));
const LIMIT_MS = 300_000;
const AT_A_TIME = 2;
const MODEL = 'test/model/sequences-1.spec.ts';
const STARTS_PROCESSES = /worker-process|npm-start|start-command|chaos\.spec|closed-at-once|closed-while-booting/;

const copies = [];
process.on('exit', () => copies.forEach((copy) => rmSync(copy, { recursive: true, force: true })));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const wanted = process.argv.slice(2);
const mutants = readdirSync(folder)
  .filter((file) => file.endsWith('.patch'))
  .sort()
  .flatMap(readMutants)
  .filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
const waiting = [...mutants];
let found = 0;
await Promise.all(Array.from({ length: AT_A_TIME }, work));
console.log(`${found} of ${mutants.length} defects were found by the tests that name them.`);
process.exitCode = found === mutants.length && found > 0 ? 0 : 1;

function readMutants(file) {
  const text = readFileSync(join(folder, file), 'utf8');
  const line = /^specs: (.+)$/m.exec(text)?.[1];
  if (!line) throw new Error(`${file} does not name its specs`);
  const [paths, title] = line.split(/\s+-t\s+/);
  const specs = paths.trim().split(/\s+/);
  const needsBuild = specs.some((spec) => STARTS_PROCESSES.test(spec + readFileSync(join(project, spec), 'utf8')));
  const mutant = { name: file, file, specs, needsBuild, title: title?.replace(/^"|"$/g, '') };
  if (!/^model: yes$/m.test(text)) return [mutant];
  // What is broken in the store in memory only, a Redis does not notice.
  const inMemory = [...text.matchAll(/^\+\+\+ b\/(.+)$/gm)].every(([, path]) => path.startsWith('lib/memory/'));
  const only = inMemory ? 'memory' : undefined;
  return [mutant, { name: `model-${file}`, file, specs: [MODEL], needsBuild: false, only }];
}

async function work() {
  const copy = copyProject();
  for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
    const since = Date.now();
    const verdict = await judge(mutant, copy);
    if (verdict === 'found') found++;
    console.log(`${verdict.padEnd(9)} ${((Date.now() - since) / 1000).toFixed(1).padStart(6)} s  ${mutant.name}`);
  }
}

function copyProject() {
  const copy = mkdtempSync(join(tmpdir(), 'delay-queue-mutants-'));
  copies.push(copy);
  const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: project, encoding: 'utf8' });
  for (const file of list.trim().split('\n')) {
    try {
      cpSync(join(project, file), join(copy, file));
    } catch (error) {
      if (error.code !== 'ENOENT') throw error; // Deleted, but still known to git.
    }
  }
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'));
  execFileSync('git', ['init', '-q'], { cwd: copy });
  return copy;
}

async function judge(mutant, copy) {
  const apply = (...flags) => run('git', ['apply', '--recount', ...flags, join(folder, mutant.file)], copy);
  const applied = await apply();
  if (applied.code !== 0) return `BROKEN (does not apply): ${applied.output.slice(0, 300)}`;
  try {
    const prepared = [await run(process.execPath, ['lib/lua/generate.mjs'], copy)];
    if (mutant.needsBuild) prepared.push(await run(process.execPath, ['tools/build.mjs'], copy));
    const failed = prepared.find(({ code }) => code !== 0);
    if (failed) return `BROKEN (does not build): ${failed.output.slice(0, 500)}`;
    const { code, output } = await run(process.execPath, jestArgs(mutant), copy);
    if (code === 0) return 'SURVIVED';
    return /Tests: +.*\d+ failed/.test(output) ? 'found' : `BROKEN (no test failed)\n${output.slice(-2000)}`;
  } finally {
    await apply('-R');
  }
}

function jestArgs({ specs, title, only }) {
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--forceExit', '--maxWorkers', '1', '--testTimeout', '60000']; // prettier-ignore
  return [...jest, ...specs, ...(title ? ['-t', title] : []), ...(only ? ['--selectProjects', only] : [])];
}

function run(command, args, cwd) {
  return new Promise((resolve) => {
    const env = { ...process.env, FORCE_COLOR: '0', MODEL_SHRINK_MS: '1000', PATIENCE_MS: '5000' }; // Found is enough.
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code: code ?? 1, output });
    });
  });
}
