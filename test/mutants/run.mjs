// npm run test:mutants: breaks the library on purpose, one defect at a time, and fails when the tests do not notice.
//
// README.md tells what a defect is made of: each is a file <area>/<name>.json of this folder.
// A defect is made in a copy of the project, and the specs that it names must fail there. The copy is built only for specs
// that start processes, which load the built package. What the model (test/model) finds as well is tried once more with the
// first part of the model, as a mutant of its own, whose name begins with `model-`.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answerHelp, refuseArguments } from '../../tools/arguments.mjs';
import { applyMutant, readMutants } from './mutants.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const project = dirname(dirname(folder));
const LIMIT_MS = 300_000;
const AT_A_TIME = 2;
const MODEL = 'test/model/sequences-1.spec.ts';
const STARTS_PROCESSES =
  /worker-process|command-line|npm-start|start-command|chaos\.spec|closed-at-once|closed-while-booting/;

const USAGE = `Usage: npm run test:mutants [-- part of a name ...]
       node test/mutants/run.mjs claims-early wake-up/     defects whose names have one of these parts
       node test/mutants/run.mjs model-                    those that the model must find
       node test/mutants/run.mjs test/mutants/claiming/claims-early.json

Without arguments all of them: an hour or more.`;
answerHelp(USAGE);

const copies = [];
process.on('exit', () => copies.forEach((copy) => rmSync(copy, { recursive: true, force: true })));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

// The path of a file, as a shell completes it, is a name, too.
const wanted = process.argv.slice(2).map((part) => part.replace(/^(?:\.\/)?test\/mutants\/|\.json$/g, ''));
const mutants = readMutants()
  .flatMap(runsOf)
  .filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
if (mutants.length === 0) refuseArguments(USAGE, `No defect has ${wanted.join(' or ')} in its name.`);
const waiting = [...mutants];
let found = 0;
await Promise.all(Array.from({ length: AT_A_TIME }, work));
console.log(`${found} of ${mutants.length} defects were found by the tests that name them.`);
process.exitCode = found === mutants.length && found > 0 ? 0 : 1;

function runsOf(mutant) {
  const { name, edits, specs, testNamePattern, model } = mutant;
  const needsBuild = specs.some((spec) => STARTS_PROCESSES.test(spec + readFileSync(join(project, spec), 'utf8')));
  const own = { name, edits, specs, testNamePattern, needsBuild };
  if (!model) return [own];
  // What is broken in the store in memory only, a Redis does not notice.
  const inMemory = edits.every(({ file }) => file.startsWith('lib/memory/'));
  const only = inMemory ? 'memory' : undefined;
  return [own, { name: `model-${name}`, edits, specs: [MODEL], needsBuild: false, only }];
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
  return copy;
}

async function judge(mutant, copy) {
  const before = new Map();
  try {
    const broken = makeDefect(mutant, copy, before);
    if (broken) return `BROKEN (does not apply): ${broken.slice(0, 300)}`;
    const prepared = [await run(process.execPath, ['lib/lua/generate.mjs'], copy)];
    if (mutant.needsBuild) prepared.push(await run(process.execPath, ['tools/build.mjs'], copy));
    const failed = prepared.find(({ code }) => code !== 0);
    if (failed) return `BROKEN (does not build): ${failed.output.slice(0, 500)}`;
    const { code, output, late } = await run(process.execPath, jestArgs(mutant), copy);
    if (late) return `BROKEN (no result after ${LIMIT_MS / 1000} s: is the machine busy?)`;
    // Jest passes when no test has the name.
    if (!/Tests: +.*\d+ (passed|failed)/.test(output)) return `BROKEN (no test ran)\n${output.slice(-2000)}`;
    if (code === 0) return 'SURVIVED';
    return /Tests: +.*\d+ failed/.test(output) ? 'found' : `BROKEN (no test failed)\n${output.slice(-2000)}`;
  } finally {
    before.forEach((text, file) => writeFileSync(join(copy, file), text));
  }
}

/** Writes the defect into the copy and remembers in `before` what stood there; gives the reason when it does not apply. */
function makeDefect(mutant, copy, before) {
  try {
    const read = (file) => before.set(file, readFileSync(join(copy, file), 'utf8')).get(file);
    applyMutant(mutant, read).forEach((text, file) => writeFileSync(join(copy, file), text));
    return undefined;
  } catch (error) {
    return error.message;
  }
}

function jestArgs({ specs, testNamePattern, only }) {
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--forceExit', '--maxWorkers', '1', '--testTimeout', '60000']; // prettier-ignore
  return [
    ...jest,
    ...specs,
    ...(testNamePattern ? ['-t', testNamePattern] : []),
    ...(only ? ['--selectProjects', only] : []),
  ];
}

function run(command, args, cwd) {
  return new Promise((resolve) => {
    const env = { ...process.env, FORCE_COLOR: '0', MODEL_SHRINK_MS: '1000', PATIENCE_MS: '5000' }; // Found is enough.
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    let late = false;
    const timer = setTimeout(() => (late = child.kill('SIGKILL')), LIMIT_MS);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code: code ?? 1, output, late });
    });
  });
}
