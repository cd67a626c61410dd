// npm run build
import { buildLibrary } from './compile.mjs';

await buildLibrary();
