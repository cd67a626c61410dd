// The rows of a run as cells, for the terminal and for Markdown.
const COLUMNS = ['scenario', 'unit', 'ours', 'BullMQ', 'bee-queue', 'bare', 'to BullMQ', 'to bee-queue', 'goal', 'met'];

export function cells(rows) {
  return [COLUMNS, ...rows.map(cellsOf)];
}

export function plainTable(rows) {
  const lines = cells(rows);
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const left = new Set([0, 1, 8]);
  return lines
    .map((line) => line.map((cell, n) => (left.has(n) ? cell.padEnd(widths[n]) : cell.padStart(widths[n]))).join('  '))
    .join('\n');
}

function cellsOf(row) {
  return [
    row.name,
    row.unit,
    ...['ours', 'bullmq', 'beeQueue', 'bare'].map((library) => figure(row, library)),
    ratio(row.ours, row.bullmq),
    ratio(row.ours, row.beeQueue),
    row.goal ?? '',
    row.busy ? 'busy' : row.met === null ? '' : row.met ? 'yes' : 'NO',
  ];
}

function figure(row, library) {
  const value = row[library];
  if (value === null || value === undefined) return row.notes?.[library]?.startsWith('failed') ? 'failed' : '-';
  const [least, most] = row.spread[library];
  return least === most ? number(value) : `${number(value)} (${number(least)}..${number(most)})`;
}

export function ratio(ours, theirs) {
  if (typeof ours !== 'number' || !theirs) return '';
  const times = ours / theirs;
  return `${times.toFixed(times >= 10 ? 1 : 2)} x`;
}

export function number(value) {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return String(Number(value.toFixed(value >= 10 ? 1 : 2)));
}
