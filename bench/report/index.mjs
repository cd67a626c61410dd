export { barChart } from './chart.mjs';
export { headline, markdown } from './markdown.mjs';
export { plainTable } from './table.mjs';
