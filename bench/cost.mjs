// node bench/cost.mjs: writes the table "What it costs" of docs/performance.md anew, from the figures of the last whole run.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { at } from '../tools/project.mjs';
import { withCostTable } from './report/cost.mjs';

const PAGE = at('docs', 'performance.md');

export function writeCostTable(results) {
  writeFileSync(PAGE, withCostTable(readFileSync(PAGE, 'utf8'), results));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeCostTable(JSON.parse(readFileSync(at('bench', 'results', 'latest.json'), 'utf8')));
}
