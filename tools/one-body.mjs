// What imports Nest is there in both formats, since Nest 12 cannot be required everywhere and Nest 11 is CommonJS. Only how its packages are imported
// differs: so the code stands once, as a function that is given them, and each format has a file that imports them and calls it.

const IMPORT = /^import (?:\{([^}]*)\} from )?"([^"]+)";\n*/gm;
const EXPORT = /^export \{([^}]*)\};\n*/m;
const LATER = /\bimport\("([^"]+)"\)/g;
/** Of these there is one format, and a bundler finds them where they stand. */
const IS_COMMON_JS = /^(?:node:|ioredis$)|\.cjs$/;

/**
 * @param {string} text an ES module as esbuild writes it: with named imports and one list of exports
 * @param {string} path of the body, as the files of the two formats require it
 * @returns {{ body: string, esm: string, cjs: string }}
 */
export function inOneBody(text, path) {
  const imports = [...text.matchAll(IMPORT)].map(([, names, from]) => ({ names, from }));
  const exported = pairsIn(EXPORT.exec(text)[1]);
  const given = [...new Set(imports.map(({ from }) => from).filter((from) => !IS_COMMON_JS.test(from)))];
  const later = [...new Set([...text.matchAll(LATER)].map(([, from]) => from))].filter(
    (from) => !IS_COMMON_JS.test(from),
  );
  const constants = imports
    .filter(({ names }) => names !== undefined)
    .map(({ names, from }) => {
      const list = pairsIn(names).map(([name, own]) => (name === own ? name : `${name}: ${own}`));
      return `const { ${list.join(', ')} } = ${IS_COMMON_JS.test(from) ? `require("${from}")` : `given["${from}"]`};`;
    });
  const code = text
    .replace(IMPORT, '')
    .replace(EXPORT, '')
    // A runner of tests knows no import() in CommonJS.
    .replace(LATER, (_, from) =>
      IS_COMMON_JS.test(from) ? `Promise.resolve().then(() => require("${from}"))` : `given.later["${from}"]()`,
    );
  const taken = /^(?:var|let|const|class|function\*?|async function\*?) (given|require|module)\b/m.exec(code);
  if (taken) throw new Error(`${path} has a ${taken[1]} of its own: rename it`);
  const results = exported.map(([own, name]) => (own === name ? name : `${name}: ${own}`));
  const names = exported.map(([, name]) => name).join(', ');
  const gifts = (giftOf) => given.map((from, at) => `"${from}": ${giftOf(from, at)}`);
  const laterGifts = (importOf) => `later: { ${later.map((from) => `"${from}": () => ${importOf(from)}`).join(', ')} }`;
  return {
    body: `"use strict";\nmodule.exports = (given) => {\n${constants.join('\n')}\n\n${code}return { ${results.join(', ')} };\n};\n`,
    esm:
      given.map((from, at) => `import * as given${at} from "${from}";\n`).join('') +
      `import body from "${path}";\n` +
      `export const { ${names} } = body({ ${[...gifts((_, at) => `given${at}`), laterGifts((from) => `import("${from}")`)].join(', ')} });\n`,
    cjs:
      `module.exports = require("${path}")({ ${[...gifts((from) => `require("${from}")`), laterGifts((from) => `Promise.resolve().then(() => require("${from}"))`)].join(', ')} });\n` +
      // For ES modules that import it: Node reads the names without running it.
      `0 && (module.exports = { ${names} });\n`,
  };
}

/** `a, b as c` as pairs. */
function pairsIn(list) {
  return list
    .split(',')
    .map((one) => one.trim().split(/\s+as\s+/))
    .filter(([name]) => name !== '')
    .map(([name, own = name]) => [name, own]);
}
