// The command line becomes one file, with the driver and the parser of arguments in it: so a command starts without looking for
// modules, and whoever installs the library gets nothing more by it.
import { chmodSync } from 'node:fs';
import { at } from './project.mjs';

export const BIN = 'dist/cli/nestjs-delay-queue.cjs';

export async function bundleCommandLine() {
  const { build } = await import('esbuild'); // only now: a fresh clone installs it before it builds
  await build({
    entryPoints: [at('lib', 'cli', 'main.ts')],
    outfile: at(BIN),
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'cjs',
    minifySyntax: true,
    minifyWhitespace: true,
    // Names of errors and classes are read by people.
    keepNames: true,
    legalComments: 'inline',
    banner: { js: '#!/usr/bin/env node' },
    // lib/cli/terminal/nest-common.ts says why.
    alias: { '@nestjs/common': at('lib', 'cli', 'terminal', 'nest-common.ts') },
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    logLevel: 'warning',
  });
  chmodSync(at(BIN), 0o755);
}
