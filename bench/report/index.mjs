export { barChart } from './chart.mjs';
export { CHARTS, figuresPicture, rowsOf } from './figures.mjs';
export { headline, markdown } from './markdown.mjs';
export { plainTable } from './table.mjs';
