// Bar charts as SVG. By hand: the small libraries that do without a DOM draw one chart or are unmaintained, the others bring
// a browser along.
const SERIES = [
  { library: 'ours', color: '#e0234e' },
  { library: 'bullmq', color: '#5b6ee1' },
  { library: 'beeQueue', color: '#d9a520' },
];
const WIDTH = 760;
const LABELS = 210;
const FIGURES = 100;
const BAR = 16;
const GAP = 14;
const TOP = 64;

/**
 * @param {string} title
 * @param {{ label: string, unit: string }[]} rows with a figure per library; null is left out
 * @param {Record<string, string>} names of the libraries
 */
export function barChart(title, rows, names) {
  const { height, parts } = drawn(title, rows, names);
  return picture(title, height, parts);
}

/**
 * Several charts below each other.
 *
 * @param {string} title
 * @param {{ title: string, rows: object[] }[]} charts
 * @param {Record<string, string>} names of the libraries
 */
export function stackedCharts(title, charts, names) {
  let top = 0;
  const all = charts.flatMap((chart) => {
    const { height, parts } = drawn(chart.title, chart.rows, names);
    top += height;
    return [`<g transform="translate(0 ${top - height})">`, ...parts, '</g>'];
  });
  return picture(title, top, all);
}

function drawn(title, rows, names) {
  const largest = Math.max(...rows.flatMap((row) => SERIES.map(({ library }) => row[library] ?? 0))) || 1;
  const scale = (WIDTH - LABELS - FIGURES) / largest;
  const parts = [text(12, 24, title, 'font-size="16" font-weight="600"')];
  SERIES.forEach(({ library, color }, n) => {
    parts.push(rect(12 + n * 170, 36, 12, 12, color), text(30 + n * 170, 47, names[library]));
  });
  let y = TOP;
  for (const row of rows) {
    const bars = SERIES.filter(({ library }) => typeof row[library] === 'number');
    parts.push(text(LABELS - 10, y + (bars.length * BAR) / 2 + 4, row.label, 'text-anchor="end"'));
    for (const { library, color } of bars) {
      const width = Math.max(1, row[library] * scale);
      const shown = `${rounded(row[library])} ${row.unit}`;
      parts.push(rect(LABELS, y, width.toFixed(1), BAR - 3, color), text(LABELS + width + 5, y + 11, shown));
      y += BAR;
    }
    y += GAP;
  }
  return { height: y, parts };
}

function picture(title, height, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    '<style>text{font:12px system-ui,sans-serif;fill:#222}</style>',
    rect(0, 0, WIDTH, height, '#fff'),
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function rect(x, y, width, height, fill) {
  return `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${fill}"/>`;
}

function text(x, y, words, more = '') {
  return `<text x="${Number(x).toFixed(1)}" y="${y}" ${more}>${escaped(words)}</text>`;
}

function escaped(words) {
  return words.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function rounded(value) {
  return value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toFixed(1)));
}
