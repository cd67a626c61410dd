// Fails a whole run of the tests in which a test that docs/features.md names did not run and pass. A run of chosen files
// or names is left alone.
import { relative } from 'node:path';
import { readFeatures } from './features-table.mjs';

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
      const names = tests.filter(({ status }) => status === 'passed').map(({ fullName }) => fullName);
      passed.set(relative(rootDir, testFilePath), names);
    }
    const named = readFeatures().flatMap(({ tests }) => tests);
    const missing = named.filter(({ file, title }) => !passed.get(file)?.some((name) => name.includes(title)));
    for (const { file, title } of missing) {
      console.error(`docs/features.md names a test that did not run and pass: ${file} "${title}"`);
    }
    if (missing.length > 0) this.#error = new Error(`${missing.length} features are not held by their tests`);
    else console.error(`All ${named.length} tests that docs/features.md names ran and passed.`);
  }

  getLastError() {
    return this.#error;
  }
}
