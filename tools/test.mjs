// npm test: from a fresh clone to the result of all tests. Arguments go to jest.
// The tests find their Redis themselves (test/global-setup.ts), so that jest run by hand does the same.
import { spawn } from 'node:child_process';
import { buildIfStale, LIBRARY, SAMPLE } from './compile.mjs';
import { installDependencies } from './dependencies.mjs';
import { obtainChromium } from './find-chromium.mjs';
import { at } from './project.mjs';

await installDependencies();
await buildIfStale([LIBRARY, SAMPLE]);
const chosen = process.argv.slice(2);
// The stories of the dashboard are skipped without it, and say so.
if (chosen.length === 0 || chosen.some((argument) => argument.includes('browser'))) await obtainChromium();

const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const jest = spawn(process.execPath, [...flags, at('node_modules/jest/bin/jest.js'), ...chosen], {
  cwd: at(),
  stdio: ['ignore', 'inherit', 'inherit'],
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => jest.kill(signal));
jest.on('exit', (code, signal) => {
  process.exitCode = code ?? 1;
  if (signal) console.error(`jest was ended by ${signal}`);
});
