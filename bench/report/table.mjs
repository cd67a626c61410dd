// The rows of a run as cells, for the terminal and for Markdown.
import { TITLES } from '../libraries/index.mjs';
import { SERVERS } from '../measure/servers.mjs';

const COLUMNS = ['scenario', 'unit', 'ours', 'BullMQ', 'bee-queue', 'bare', 'to BullMQ', 'to bee-queue', 'goal', 'met'];
const USUAL = ['ours', 'bullmq', 'beeQueue', 'bare'];
/** Peers of few rows: they have columns in a table of their own, so that it stays as wide as a screen. */
const OTHERS = Object.keys(TITLES).filter((library) => !USUAL.includes(library));
const SERVER_COLUMNS = Object.keys(SERVERS);

export function cells(rows) {
  return [COLUMNS, ...rows.filter((row) => !has(OTHERS, row) && !has(SERVER_COLUMNS, row)).map(cellsOf)];
}

/** @returns the tables with columns of their own; none without such rows */
export function furtherCells(rows) {
  return [
    cellsWith(rows, OTHERS, { ...TITLES, ours: 'ours' }, ['ours', ...OTHERS]),
    cellsWith(rows, SERVER_COLUMNS, SERVERS, SERVER_COLUMNS),
  ].filter((table) => table.length > 0);
}

function cellsWith(rows, which, titles, columns) {
  const theirs = rows.filter((row) => has(which, row));
  if (theirs.length === 0) return [];
  const head = ['scenario', 'unit', ...columns.map((column) => titles[column]), ''];
  const lines = theirs.map((row) => [
    row.name,
    row.unit,
    ...columns.map((column) => figure(row, column)),
    row.busy ? 'busy' : '',
  ]);
  return [head, ...lines];
}

const has = (columns, row) => columns.some((column) => column in row || row.notes?.[column]);

export function plainTable(rows) {
  return [cells(rows), ...furtherCells(rows)]
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

function figure(row, column) {
  const value = row[column];
  if (value === null || value === undefined) return row.notes?.[column]?.startsWith('failed') ? 'failed' : '-';
  const [least, most] = row.spread[column];
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
