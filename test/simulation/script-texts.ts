import nodeCrypto from 'node:crypto';

const scripts = new Map<string, { readonly hash: string; readonly source: string }>();

/** Of equal texts always the same one: they are long, and a text is compared with itself at no cost. */
export function scriptOf(source: string): { readonly hash: string; readonly source: string } {
  let script = scripts.get(source);
  if (!script) {
    const hash = nodeCrypto.createHash('sha1').update(source, 'latin1').digest('hex');
    scripts.set(source, (script = { hash, source }));
  }
  return script;
}
