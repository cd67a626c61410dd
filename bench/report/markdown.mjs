// bench/results/latest.md, which docs/performance.md shows.
import { TITLES } from '../libraries/index.mjs';
import { SERVERS } from '../measure/servers.mjs';
import { cells, furtherCells } from './table.mjs';

export function markdown({ meta, scenarios }, charts) {
  const row = (line) => `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const table = ([head, ...lines]) => head && [row(head), row(head.map(() => '---')), ...lines.map(row)].join('\n');
  const parts = [
    `${headline(meta)}`,
    table(cells(scenarios)),
    ...furtherCells(scenarios).map(table),
    'Medians, with the smallest and largest run in brackets. `-`: not measured, or the library has no such thing.',
    leftOut(scenarios),
    busyRows(scenarios),
    charts.map(({ file, title }) => `![${title}](${file})`).join('\n'),
    Object.entries(meta.settings)
      .map(([library, text]) => `- ${TITLES[library]}: ${text}`)
      .join('\n'),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

export function headline(meta) {
  const { machine, node, redis, versions, date, quick, scale } = meta;
  const peers = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const size = quick ? '`--quick` sizes' : 'full sizes';
  const warning = scale === 1 ? '' : ` SHRUNK by --scale ${scale}: these figures mean nothing.`;
  return `${date.slice(0, 10)}, ${machine}, Node ${node}, ${redis}; ${peers.join(', ')}; ${size}, payload of 75 bytes.${warning}`;
}

/** Which columns have no figure, and why. */
function leftOut(scenarios) {
  const why = scenarios.flatMap(({ notes }) => Object.entries(notes ?? {}));
  const lines = new Set(why.map(([column, note]) => `- ${TITLES[column] ?? SERVERS[column]}: ${note}`));
  return lines.size > 0 && `Left out somewhere:\n\n${[...lines].join('\n')}`;
}

/** Which figures say less than the others, and why. */
function busyRows(scenarios) {
  const busy = scenarios.filter((row) => row.busy);
  if (busy.length === 0) return '';
  const list = busy.map((row) => `- ${row.name}: ${row.busy}`).join('\n');
  return `Of these rows the machine did something else meanwhile (shares of all cores in the worst run), so they decide no goal:\n\n${list}`;
}
