// Fails a whole run of the tests in which a test that docs/features.md or test/limits-combinations.md names did not run and pass. A run of chosen files
// or names is left alone. Stories in a browser may be skipped, where there is none.
import { relative } from 'node:path';
import { readCombinations, readFeatures } from './features-table.mjs';

export default class FeaturesReporter {
  #config;
  #error;

  constructor(config) {
    this.#config = config;
  }

  onRunComplete(_, { testResults }) {
    const { nonFlagArgs, testNamePattern, shard, onlyChanged, findRelatedTests, rootDir } = this.#config;
    if (nonFlagArgs?.length || testNamePattern || shard || onlyChanged || findRelatedTests) return;
    const passed = new Map();
    for (const { testFilePath, testResults: tests } of testResults) {
      const file = relative(rootDir, testFilePath);
      const counts = file.startsWith('test/browser/') ? ['passed', 'pending'] : ['passed'];
      const names = tests.filter(({ status }) => counts.includes(status)).map(({ fullName }) => fullName);
      passed.set(file, names);
    }
    const named = [...readFeatures(), ...readCombinations().rows].flatMap(({ tests }) => tests);
    const missing = named.filter(({ file, title }) => !passed.get(file)?.some((name) => name.includes(title)));
    for (const { file, title } of missing) {
      console.error(`A table of features names a test that did not run and pass: ${file} "${title}"`);
    }
    if (missing.length > 0) this.#error = new Error(`${missing.length} features are not held by their tests`);
    else console.error(`All ${named.length} tests that the tables of features name ran and passed.`);
  }

  getLastError() {
    return this.#error;
  }
}
