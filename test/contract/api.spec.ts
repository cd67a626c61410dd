import { spawnSync } from 'node:child_process';
import { expect, it } from '@jest/globals';

const WHAT_TO_DO =
  'What the package exports is not what test/contract/api says. If that is meant, run `npm run generate:api`, commit its files, ' +
  'and tell users in the CHANGELOG; otherwise a type or an export has changed by accident.';

it('exports what the reports of its entries say, and nothing else', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['tools/api-report.mjs', '--check'], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${WHAT_TO_DO}\n${stdout}${stderr}`);
  expect(stdout).toBe('');
});
