// How the page of the dashboard is built: one script and one style sheet, named by their content, and `assets.json`, the
// table in which the server looks them up (AssetManifest of ../api.ts). The files are compressed here: nobody reads them, nearly every
// browser takes them so, and the package is 117 kB smaller.
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = fileURLToPath(new URL('.', import.meta.url));

const TYPES = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };

/** @returns {import('vite').Plugin} */
function assetTable() {
  return {
    name: 'asset-table',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const { 'index.html': html, ...others } = bundle;
        const page = String(html.source).replace(/<base href="\/" ?\/?>/, '<base href="/">');
        if (!page.includes('<base href="/">')) throw new Error('the page has lost its <base href="/">');
        const files = Object.fromEntries(
          Object.keys(others).map((name) => [name, { type: TYPES[name.slice(name.lastIndexOf('.') + 1)] }]),
        );
        const unknown = Object.keys(files).filter((name) => !files[name].type);
        if (unknown.length > 0) throw new Error(`the page is scripts and styles only, not ${unknown.join(', ')}`);
        delete bundle['index.html'];
        for (const [name, file] of Object.entries(others)) {
          delete bundle[name];
          const source = gzipSync(file.type === 'chunk' ? file.code : file.source, { level: 9 });
          this.emitFile({ type: 'asset', fileName: `${name}.gz`, source });
        }
        this.emitFile({ type: 'asset', fileName: 'assets.json', source: JSON.stringify({ page, files }, null, 1) });
      },
    },
  };
}

/** @type {import('vite').InlineConfig} */
export default {
  root: here,
  configFile: false,
  envDir: false,
  // The page may lie below any path: it names its files relative to its base.
  base: './',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [assetTable()],
  build: {
    outDir: fileURLToPath(new URL('../../../dist/dashboard', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // All of them know light-dark(), which would be written out otherwise.
    cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
};
