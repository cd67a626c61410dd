import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import vm from 'node:vm';
import { KEEP, withKeeper } from './module-state.js';
import type { Keeper } from './module-state.js';

/** Globals that the loaded code sees in place of the real ones. */
const GLOBALS = [
  'globalThis',
  'Date',
  'Math',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'performance',
  'process',
  'console',
  'crypto',
  'fetch',
] as const;
export type ProcessGlobals = Readonly<Partial<Record<(typeof GLOBALS)[number], unknown>>>;

/** Packages that keep no state, or none that a process could notice: they are loaded as usual. */
const USUAL =
  /[\\/]node_modules[\\/](?:@nestjs|rxjs|reflect-metadata|tslib|@ioredis|cluster-key-slot|redis-errors|denque)[\\/]/;
/** Modules of Node that bring in time, chance or the outer world. Without a copy of them nothing may load them. */
const REFUSED = [
  'net',
  'tls',
  'dns',
  'timers',
  'timers/promises',
  'perf_hooks',
  'child_process',
  'worker_threads',
  'cluster',
  'fs',
];

type Evaluate = (...args: unknown[]) => void;
interface LoadedModule {
  exports: unknown;
  readonly id: string;
  readonly filename: string;
}

const compiled = new Map<string, Evaluate>();
const resolved = new Map<string, string>();

/** The modules of the built package and of the driver, with other globals and other modules of Node. The code itself does not notice. */
export class Loader {
  /** Of the modules that have state, in the order in which they were loaded. */
  readonly keepers: Keeper[] = [];
  readonly #modules = new Map<string, LoadedModule>();
  readonly #globals: readonly unknown[];

  /**
   * @param project the folder with `dist-modules` and `node_modules`
   * @param builtins modules of Node and packages that are replaced, by name without `node:`
   * @param evaluating is called around the evaluation of each module
   */
  constructor(
    readonly project: string,
    globals: ProcessGlobals,
    private readonly builtins: Readonly<Record<string, unknown>>,
    private readonly evaluating: (evaluate: () => void) => void = (evaluate) => evaluate(),
  ) {
    this.#globals = GLOBALS.map((name) => globals[name]);
  }

  /** A file of the library, by its path in `lib` without the ending. */
  library<T>(file: string): T {
    return this.#require(path.join(this.project, 'x.js'), this.#pathOf(file)) as T;
  }

  /** Whether this build of the library has such a file. */
  has(file: string): boolean {
    return existsSync(this.#pathOf(file));
  }

  #pathOf(file: string): string {
    return path.join(this.project, 'dist-modules', 'cjs', `${file}.js`);
  }

  /** A package that the application uses itself. */
  package<T>(name: string): T {
    return this.#require(path.join(this.project, 'x.js'), name) as T;
  }

  #require(from: string, request: string): unknown {
    const bare = request.replace(/^node:/, '');
    if (Object.hasOwn(this.builtins, bare)) return this.builtins[bare];
    const key = `${path.dirname(from)}\0${request}`;
    let file = resolved.get(key);
    if (file === undefined) resolved.set(key, (file = createRequire(from).resolve(request)));
    if (!path.isAbsolute(file)) {
      if (REFUSED.includes(bare)) {
        throw new Error(`${from} loads ${request}, which a simulated process must not have.`);
      }
      return createRequire(from)(request);
    }
    if (USUAL.test(file)) return createRequire(from)(file);
    return this.#module(file);
  }

  #module(file: string): unknown {
    const known = this.#modules.get(file);
    if (known) return known.exports;
    const module: LoadedModule = { exports: {}, id: file, filename: file };
    this.#modules.set(file, module);
    if (file.endsWith('.json')) return (module.exports = JSON.parse(readFileSync(file, 'utf8')));
    const evaluate = evaluateOf(file);
    const require = (name: string) => this.#require(file, name);
    const keep = (keeper: Keeper) => void this.keepers.push(keeper);
    const folder = path.dirname(file);
    this.evaluating(() => {
      evaluate.call(module.exports, module.exports, require, module, file, folder, keep, ...this.#globals);
    });
    return module.exports;
  }
}

function evaluateOf(file: string): Evaluate {
  let evaluate = compiled.get(file);
  if (!evaluate) {
    const parameters = ['exports', 'require', 'module', '__filename', '__dirname', KEEP, ...GLOBALS];
    const code = withKeeper(readFileSync(file, 'utf8'), file);
    evaluate = vm.compileFunction(code, parameters, { filename: file }) as Evaluate;
    compiled.set(file, evaluate);
  }
  return evaluate;
}
