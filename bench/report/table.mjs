// The rows of a run as cells, for the terminal and for Markdown.
import { TITLES } from '../libraries/index.mjs';

const COLUMNS = ['scenario', 'unit', 'ours', 'BullMQ', 'bee-queue', 'bare', 'to BullMQ', 'to bee-queue', 'goal', 'met'];
const USUAL = ['ours', 'bullmq', 'beeQueue', 'bare'];
/** Peers of few rows: they have columns in a table of their own, so that it stays as wide as a screen. */
const OTHERS = Object.keys(TITLES).filter((library) => !USUAL.includes(library));

export function cells(rows) {
  return [COLUMNS, ...rows.filter((row) => !hasOthers(row)).map(cellsOf)];
}

/** @returns nothing without rows of other peers */
export function cellsOfOthers(rows) {
  const theirs = rows.filter(hasOthers);
  if (theirs.length === 0) return [];
  const head = ['scenario', 'unit', 'ours', ...OTHERS.map((library) => TITLES[library]), ''];
  const lines = theirs.map((row) => [
    row.name,
    row.unit,
    ...['ours', ...OTHERS].map((library) => figure(row, library)),
    row.busy ? 'busy' : '',
  ]);
  return [head, ...lines];
}

const hasOthers = (row) => OTHERS.some((library) => library in row || row.notes?.[library]);

export function plainTable(rows) {
  return [cells(rows), cellsOfOthers(rows)]
    .filter((lines) => lines.length > 1)
    .map(aligned)
    .join('\n\n');
}

function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const left = new Set([0, 1, 8]);
  return lines
    .map((line) => line.map((cell, n) => (left.has(n) ? cell.padEnd(widths[n]) : cell.padStart(widths[n]))).join('  '))
    .join('\n');
}

function cellsOf(row) {
  return [
    row.name,
    row.unit,
    ...USUAL.map((library) => figure(row, library)),
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
