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

/**
 * The number that an option gives. Ends the process where it is none: a typing error must not pass for a run that found nothing.
 * @param {string} usage
 * @param {string} option as `--seeds`
 * @template {string | undefined} Text
 * @param {Text} text undefined where it was not given
 * @param {{ least?: number; isWhole?: boolean }} bounds
 * @returns {Text extends string ? number : undefined}
 */
export function readNumber(usage, option, text, { least = 1, isWhole = true } = {}) {
  if (text === undefined) return undefined;
  const value = Number(text);
  // Number() reads an empty text, '0x10' and '1e3' as well.
  const isNumber = isWhole
    ? /^(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(value)
    : /\d/.test(text) && Number.isFinite(value);
  if (isNumber && value >= least) return value;
  const expected = `a ${isWhole ? 'whole ' : ''}number from ${least} on`;
  return refuseArguments(usage, `${option} must be ${expected}, and not ${JSON.stringify(text)}.`);
}

/**
 * The object that an option gives as JSON.
 * @param {string} usage
 * @param {string} option
 * @param {string} text
 */
export function readObject(usage, option, text) {
  try {
    const value = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Told below.
  }
  return refuseArguments(usage, `${option} must be an object as JSON, and not ${JSON.stringify(text)}.`);
}
