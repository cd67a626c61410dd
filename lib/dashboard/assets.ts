import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { isPlainObject } from '../job/option-rules.js';
import type { Answer } from './answers.js';

const inflated = promisify(gunzip);
const YEAR = 'private, max-age=31536000, immutable';
const BASE = '<base href="/">';

/** What a browser loads: the page, and its files by their names. No path is looked for on the disk. */
export interface Assets {
  readonly page: string;
  readonly files: ReadonlyMap<string, AssetFile>;
}

export interface AssetFile {
  /** For who does not take it compressed: inflated once, when it is read. */
  readonly plain: Answer;
  readonly gzipped: Answer;
}

/**
 * @param folder what the build of the page has made; default: that of this package
 * @throws InvalidOptionError
 */
export async function loadAssets(folder: string | undefined, where: string): Promise<Assets> {
  try {
    const home = folder ?? (await ownFolder());
    const { page, files } = readManifest(await readFile(join(home, 'assets.json'), 'utf8'));
    const read = files.map(async ([name, type]): Promise<[string, AssetFile]> => {
      const body = await readFile(join(home, `${name}.gz`));
      const headers = { 'cache-control': YEAR, vary: 'accept-encoding' };
      const plain = { status: 200, type, body: await inflated(body), headers };
      const gzipped = { ...plain, body, headers: { ...headers, 'content-encoding': 'gzip' } };
      return [name, { plain, gzipped }];
    });
    return { page, files: new Map(await Promise.all(read)) };
  } catch (cause) {
    throw new InvalidOptionError(
      `${where}: the files of the page cannot be read (${(cause as Error).message}). They are in dist/dashboard of this ` +
        'package; an application that is bundled into one file says where they are.',
      { cause },
    );
  }
}

function readManifest(text: string): { page: string; files: [name: string, type: string][] } {
  const manifest: unknown = JSON.parse(text);
  const { page, files } = isPlainObject(manifest) ? manifest : {};
  if (typeof page !== 'string' || !page.includes(BASE) || !isPlainObject(files)) {
    throw new Error('assets.json is not what the build of the page writes');
  }
  return { page, files: Object.entries(files).map(([name, { type }]: [string, any]) => [name, String(type)]) };
}

/**
 * The build leaves a module there that knows where it is. Its name, as `dist/core` sees it, is no literal: a bundler, and the build itself, would
 * look for it beside this file.
 */
async function ownFolder(): Promise<string> {
  const name = '../dashboard/folder.cjs';
  const found = (await import(name)) as string | { default: string };
  return typeof found === 'string' ? found : found.default;
}

/** @param accepted the `accept-encoding` of a request */
export function fileAnswer({ plain, gzipped }: AssetFile, accepted = ''): Answer {
  const [, quality = '1'] = /(?:^|,)\s*gzip\s*(?:;\s*q=([\d.]+)\s*)?(?=,|$)/i.exec(accepted) ?? [undefined, '0'];
  return Number(quality) > 0 ? gzipped : plain;
}

/** @param mount where the dashboard is, as the browser wrote it   @param isBelow the request has a slash behind that */
export function pageAnswer({ page }: Assets, mount: string, isBelow: boolean): Answer {
  // Relative, so that it holds behind any proxy: what that adds before the path only the browser knows.
  const folder = mount.slice(mount.lastIndexOf('/') + 1);
  const base = isBelow || folder === '' ? './' : `./${escaped(folder)}/`;
  return {
    status: 200,
    type: 'text/html; charset=utf-8',
    body: page.replace(BASE, () => `<base href="${base}">`),
    headers: { 'cache-control': 'no-cache' },
  };
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
