// What all commands of the project do with their arguments: `--help` is answered before anything is installed, built or
// started, and a wrong argument ends the command with one line and the usage instead of a stack.
import { parseArgs } from 'node:util';

/**
 * Ends the process if the arguments ask for help.
 * @param {string} usage
 */
export function answerHelp(usage) {
  const asked = process.argv.slice(2);
  if (!asked.includes('--help') && !asked.includes('-h')) return;
  console.log(usage);
  process.exit(0);
}

/**
 * Ends the process because an argument is wrong.
 * @param {string} usage
 * @param {string} problem a sentence
 */
export function refuseArguments(usage, problem) {
  console.error(`${problem}\n\n${usage}`);
  process.exit(2);
}

/**
 * Like `parseArgs()`, with `--help` and with wrong arguments told apart from failures.
 * @param {string} usage
 * @param {Pick<import('node:util').ParseArgsConfig, 'options' | 'allowPositionals'>} config
 */
export function readArguments(usage, config) {
  answerHelp(usage);
  try {
    return parseArgs(config);
  } catch (error) {
    return refuseArguments(usage, error.message);
  }
}
