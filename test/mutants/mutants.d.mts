export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}
export interface Mutant {
  /** `<area>/<name>`, as its file is called. */
  readonly name: string;
  readonly breaks: string;
  readonly edits: readonly Edit[];
  readonly specs: readonly string[];
  /** Only tests whose full name matches this run, as with the option of Jest. */
  readonly testNamePattern: string | undefined;
  /** Whether test/model finds it, too. */
  readonly model: boolean;
}
export function readMutants(): Mutant[];
export function parseMutant(name: string, text: string): Mutant;
export function applyEdits(text: string, edits: readonly Edit[]): string;
export function applyMutant(mutant: Mutant, read: (file: string) => string): Map<string, string>;
