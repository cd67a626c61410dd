import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import type { AssetManifest } from '../../lib/dashboard/api.js';

// What the build of the page may weigh, and what it may ask for.

const FOLDER = 'dist/dashboard';
const MOST_KB = { js: 60, css: 8 };

const { page, files } = JSON.parse(readFileSync(join(FOLDER, 'assets.json'), 'utf8')) as AssetManifest;
const names = Object.keys(files);
const compressed = (name: string) => readFileSync(join(FOLDER, `${name}.gz`));
const text = (name: string) => gunzipSync(compressed(name)).toString();

describe('the page of the dashboard', () => {
  it.each(Object.entries(MOST_KB))('has %s of at most %i KB, compressed', (ending, most) => {
    const sizes = names.filter((name) => name.endsWith(`.${ending}`)).map((name) => compressed(name).length);
    expect(sizes.length).toBeGreaterThan(0);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(most * 1_024);
  });

  it('is scripts and styles alone, named by their content: no fonts and no images', () => {
    expect(names.filter((name) => !/^assets\/[\w-]+-[\w-]{8}\.(?:js|css)$/.test(name))).toEqual([]);
    expect(
      readdirSync(join(FOLDER, 'assets'))
        .map((name) => `assets/${name}`)
        .sort(),
    ).toEqual(names.map((name) => `${name}.gz`).sort());
    const styles = names.filter((name) => name.endsWith('.css')).map(text);
    expect(styles.filter((style) => /url\(|@import|@font-face/.test(style))).toEqual([]);
  });

  it('names no other host', () => {
    const named = [page, ...names.map(text)].flatMap(
      (all) => all.match(/(?:https?:)?\/\/[\w-]+(?:\.[\w-]+)+[\w/-]*/g) ?? [],
    );
    const namespaces =
      /^(?:https?:)?\/\/www\.w3\.org\/(?:2000\/svg|1999\/xhtml|1999\/xlink|1998\/Math\/MathML|2000\/xmlns|XML)/;
    expect(named.filter((url) => !namespaces.test(url))).toEqual([]);
  });

  it('has a base for the server to fill in, and nothing that a strict policy would refuse', () => {
    expect(page.match(/<base href="\/">/g)).toHaveLength(1);
    expect(page).not.toMatch(/<script(?![^>]* src="\.\/)|<style|\sstyle=|\son\w+=/);
    expect(names.filter((name) => /\beval\(|new Function\(/.test(text(name)))).toEqual([]);
  });
});
