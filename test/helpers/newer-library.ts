import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The built package as a later version would be: the same, but with a stored layout that this one does not know. Processes
 * of it and of this version can so be put on one queue, as during an upgrade and a rollback.
 */
export class NewerLibrary {
  /** For `WorkerProcess`: worker-program.mjs, which imports the package by its name and so finds this one. */
  readonly program: string;

  private constructor(private readonly folder: string) {
    this.program = join(folder, 'worker-program.mjs');
  }

  static make(layout: number): NewerLibrary {
    const folder = mkdtempSync(join(tmpdir(), 'newer-library-'));
    cpSync(join(project, 'dist'), join(folder, 'dist'), { recursive: true });
    cpSync(join(project, 'package.json'), join(folder, 'package.json'));
    cpSync(join(project, 'test/helpers/worker-program.mjs'), join(folder, 'worker-program.mjs'));
    symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
    const file = join(folder, 'dist', 'core', 'delay-queue.cjs');
    const text = readFileSync(file, 'utf8');
    const newer = text.replaceAll(/local LAYOUT = \d+\b/g, `local LAYOUT = ${layout}`);
    if (newer === text) throw new Error(`${file} does not say which layout it has`);
    writeFileSync(file, newer);
    return new NewerLibrary(folder);
  }

  async stop(): Promise<void> {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
