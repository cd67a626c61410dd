import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import ts from 'typescript';

const FOLDER = 'test/types';
const { config } = ts.readConfigFile('tsconfig.json', (path) => ts.sys.readFile(path));
const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, resolve('.'));

/** Of one file alone: what it augments holds in no other. */
function problemsOf(name: string, more: ts.CompilerOptions): string[] {
  const file = join(FOLDER, name);
  const program = ts.createProgram([file], { ...options, types: ['node'], noUnusedLocals: false, ...more });
  const source = program.getSourceFile(file)!;
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
    ({ start, messageText }) => {
      const { line } = source.getLineAndCharacterOfPosition(start ?? 0);
      return `${file}:${line + 1} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    },
  );
}

// Each `@ts-expect-error` in these files is a mistake that must not compile: one that compiles is a problem, too.
// A compiler at work: a minute or more where others compile as well.
jest.setTimeout(400_000);

describe('the types', () => {
  it('of a queue hold at both ends: producer, handler, batch handler and injected handle', () => {
    expect(problemsOf('open.ts', {})).toEqual([]);
  });

  it('close the list of names, know what the codec keeps, and take undefined for left out', () => {
    expect(problemsOf('closed.ts', { exactOptionalPropertyTypes: true })).toEqual([]);
  });

  it('complete the names of queues in an editor', () => {
    const file = join(FOLDER, 'open.ts');
    const host: ts.LanguageServiceHost = {
      getScriptFileNames: () => [file],
      getScriptVersion: () => '1',
      getScriptSnapshot: (path) => {
        const text = ts.sys.readFile(path);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => resolve('.'),
      getCompilationSettings: () => ({ ...options, types: ['node'] }),
      getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
      fileExists: (path) => ts.sys.fileExists(path),
      readFile: (path) => ts.sys.readFile(path),
      directoryExists: (path) => ts.sys.directoryExists(path),
      getDirectories: (path) => ts.sys.getDirectories(path),
    };
    const service = ts.createLanguageService(host);
    const text = ts.sys.readFile(file)!;
    const at = text.indexOf("enqueue('payment.check'") + "enqueue('".length;
    const found =
      service.getCompletionsAtPosition(resolve(file), at, undefined) ??
      service.getCompletionsAtPosition(file, at, undefined);
    expect(found?.entries.map(({ name }) => name)).toContain('payment.check');
    service.dispose();
  });

  it('are compiled, every file of them', () => {
    expect(readdirSync(FOLDER).sort()).toEqual(['closed.ts', 'open.ts']);
  });
});
