import { createRequire } from 'node:module';
import path from 'node:path';
import type { MemoryStore } from '../../lib/memory/memory.store.js';
import { Loader } from './loader.js';
import { countedLuaBranches } from './lua-branches.js';
import { compilerOf } from './lua-javascript.js';
import { patternsInJavaScript } from './lua-patterns.js';
import type { LuaModules } from './lua-runtime.js';

type StoreClass = typeof MemoryStore;
type Patterns = typeof import('../../lib/memory/lua/lua.patterns.js');

const stores = new Map<string, StoreClass>();
const names = new Map<string, Map<string, string>>();

/**
 * The store in memory of the built package. What it has compiled serves all simulations of this process.
 *
 * @param ownLua its own compiler of Lua, too: slow, for comparison
 */
export function storeClass(project: string, ownLua: boolean): StoreClass {
  const key = `${project} ${ownLua}`;
  let store = stores.get(key);
  if (!store) {
    // Messages leave at once: the simulated network delays them.
    const atOnce = (run: () => void) => run();
    const replaced: Record<string, unknown> = {};
    const loader = loaderOf(project, { setImmediate: atOnce }, replaced);
    if (!ownLua) {
      // First of all: the other modules of Lua load it.
      const { findPattern } = loader.library<Pick<Patterns, 'findPattern'>>('memory/lua/lua.patterns');
      replaced['./lua.patterns.js'] = { findPattern: patternsInJavaScript(findPattern) };
      Object.assign(replaced, inJavaScript(loader));
    }
    store = loader.library<{ MemoryStore: StoreClass }>('memory/memory.store').MemoryStore;
    stores.set(key, store);
  }
  return store;
}

/** What stands for the store's compiler, and for its parser where branches are counted. */
function inJavaScript(loader: Loader): object {
  const compiler = { compile: compilerOf(luaModulesOf(loader)) };
  const branches = countedLuaBranches();
  if (!branches) return { './lua/lua.compiler.js': compiler };
  const { parse } = loader.library<typeof import('../../lib/memory/lua/lua.parser.js')>('memory/lua/lua.parser');
  const parser = { parse: (text: string) => branches.parsed(text, parse(text)) };
  return { './lua/lua.compiler.js': compiler, './lua/lua.parser.js': parser };
}

function luaModulesOf(loader: Loader): LuaModules {
  const part = <T>(name: string) => loader.library<T>(`memory/lua/lua.${name}`);
  return { values: part('values'), operators: part('operators'), library: part('library') };
}

/** The name of a script in the built package, with or without its first line; `?` for any other text. */
export function scriptNameOf(project: string, source: string): string {
  let known = names.get(project);
  if (!known) {
    known = new Map(sourcesOf(project).map(([name, body]) => [body, name]));
    names.set(project, known);
  }
  let name = known.get(source);
  if (name === undefined) {
    name = known.get(source.slice(source.indexOf('\n') + 1)) ?? '?';
    known.set(source, name); // The text is long, and is asked for with each step.
  }
  return name;
}

/** Of both builds: with limits and without. An older library has one. */
function sourcesOf(project: string): [name: string, body: string][] {
  const loader = loaderOf(project, {}, {});
  const { SOURCES } = loader.library<Pick<Generated, 'SOURCES'>>('lua/scripts.generated');
  const limited = 'lua/scripts.limited.generated';
  if (!loader.has(limited)) return Object.entries(SOURCES);
  const { LIMITED_SOURCES } = loader.library<Pick<Generated, 'LIMITED_SOURCES'>>(limited);
  return [...Object.entries(SOURCES), ...Object.entries(LIMITED_SOURCES)];
}

interface Generated {
  readonly SOURCES: Readonly<Record<string, string>>;
  readonly LIMITED_SOURCES: Readonly<Record<string, string>>;
}

/** @param replaced modules, by the names by which they are asked for */
function loaderOf(project: string, timers: object, replaced: Record<string, unknown>): Loader {
  const common: unknown = createRequire(path.join(project, 'x.js'))('@nestjs/common');
  const globals = { globalThis, Date, Math, process, console, setTimeout, ...timers };
  return new Loader(project, globals, Object.assign(replaced, { timers: { ...timers }, '@nestjs/common': common }));
}
