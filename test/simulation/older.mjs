// Builds the library of an older commit into dist-older, beside which the present one runs: a deployment that goes from process to process.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import ts from 'typescript';
import { at } from '../../tools/project.mjs';

// As tsconfig.cjs.json has it, without types.
const compilerOptions = {
  module: ts.ModuleKind.CommonJS,
  target: ts.ScriptTarget.ES2023,
  esModuleInterop: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/** @param commit any name that git knows */
export function buildOlder(commit) {
  const name = git('rev-parse', '--verify', `${commit}^{commit}`).trim();
  if (builtCommit() === name) return;
  rmSync(at('dist-older'), { recursive: true, force: true });
  for (const file of git('ls-tree', '-r', '--name-only', name, 'lib').split('\n')) {
    if (!file.endsWith('.ts')) continue;
    const { outputText } = ts.transpileModule(git('show', `${name}:${file}`), { fileName: file, compilerOptions });
    const built = at('dist-older', file.replace(/^lib/, 'dist-modules/cjs').replace(/\.ts$/, '.js'));
    mkdirSync(dirname(built), { recursive: true });
    writeFileSync(built, outputText);
  }
  writeFileSync(at('dist-older', 'package.json'), '{ "type": "commonjs" }\n');
  writeFileSync(at('dist-older', 'dist-modules', 'commit'), name);
}

function builtCommit() {
  try {
    return readFileSync(at('dist-older', 'dist-modules', 'commit'), 'utf8');
  } catch {
    return undefined;
  }
}

function git(...args) {
  return execFileSync('git', args, { cwd: at(), encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 });
}
