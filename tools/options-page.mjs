// npm run generate:options: writes the tables of docs/options.md from the interfaces of the options, so that the page says what
// their comments say. A line `<!-- options FILE INTERFACE -->` stands before each table; the rest of the page is written by hand.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { answerHelp } from './arguments.mjs';
import { at } from './project.mjs';

const PAGE = at('docs', 'options.md');
const MARK = /^(<!-- options (\S+) (\w+) -->\n)\n(?:\|.*\n)*\n*/gm;
/** With the comment before it; comments and types may take several lines. */
const FIELD = /^ {2}(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+)?(\w+)(\?)?: ((?:(?!;\n)[\s\S])+);$/gm;
/** The last sentence that begins with it. */
const DEFAULT = /\s*\bDefaults?:? ((?:(?!\. |\.$)[\s\S])+)\.(?=\s|$)/;

/** `'keep' | 'replace'` says more than the name of such a type. */
const CHOICES = new Map(
  readdirSync(at('lib'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => [...readFileSync(at('lib', name), 'utf8').matchAll(/^export type (\w+) = ((?:'\w+'[ |]*)+);/gm)])
    .map(([, name, choices]) => [name, choices]),
);

/** @returns {Promise<string>} the page as the sources want it */
async function optionsPage() {
  const page = readFileSync(PAGE, 'utf8');
  const text = page.replace(MARK, (_, mark, file, name) => `${mark}\n${tableOf(file, name)}\n`);
  return format(text, { ...(await resolveConfig(PAGE)), filepath: PAGE });
}

function tableOf(file, name) {
  const rows = fieldsOf(file, name).map(({ field, type, required, fallback, text }) =>
    row([`\`${field}\``, `\`${type}\``, required ? 'required' : fallback, text]),
  );
  return [row(['option', 'value', 'default', '']), row(['---', '---', '---', '---']), ...rows, ''].join('\n');
}

/** The fields of an interface, with what their comments say. */
function fieldsOf(file, name) {
  const source = readFileSync(at(file), 'utf8');
  const body = new RegExp(`^(?:export )?interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(source)?.[1];
  if (body === undefined) throw new Error(`docs/options.md: ${file} has no interface ${name}`);
  return [...body.matchAll(FIELD)].map(([, comment = '', field, optional, type]) => {
    const text = oneLine(comment.replace(/^\s*\*/gm, ''));
    const [sentence, fallback = ''] = DEFAULT.exec(text) ?? [''];
    const known = CHOICES.get(type) ?? oneLine(type);
    return { field, type: known, required: !optional, fallback, text: text.replace(sentence, () => '').trim() };
  });
}

const oneLine = (text) => text.replace(/\s+/g, ' ').trim();
const row = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;

answerHelp(
  'Usage: npm run generate:options [-- --check]       writes the tables of docs/options.md; --check only compares',
);
const wanted = await optionsPage();
if (!process.argv.includes('--check')) {
  writeFileSync(PAGE, wanted);
} else if (readFileSync(PAGE, 'utf8') !== wanted) {
  console.error('docs/options.md does not say what lib does: run `npm run generate:options`.');
  process.exit(1);
}
