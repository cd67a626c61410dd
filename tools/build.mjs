// npm run build
import { answerHelp } from './arguments.mjs';
import { buildLibrary } from './compile.mjs';

answerHelp('Usage: npm run build       writes dist: ESM, and CommonJS behind `require`');

await buildLibrary();
