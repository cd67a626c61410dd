// For .prettierrc: tables of markdown that are wider than a line are written without padding. Padded they are as hard to read, one changed
// cell changes every row, and the package would have 200 kB of spaces more. Prettier does so with `proseWrap: "never"` alone, which would
// join the lines of all prose.
import * as markdown from 'prettier/plugins/markdown';

const { mdast } = markdown.printers;

/** Prettier takes the printer from where the parser is. */
export const { parsers } = markdown;
export const printers = {
  mdast: {
    ...mdast,
    print: (path, options, print, args) =>
      mdast.print(path, path.node.type === 'table' ? { ...options, proseWrap: 'never' } : options, print, args),
  },
};
