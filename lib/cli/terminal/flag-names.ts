import type { OptionNaming } from '../../job/option-rules.js';

/**
 * Names an option of the library as the flag that gives it: `expiresIn` is `--expires-in`. With it a command has the library check
 * what was given before anything is sent, and an error names what was typed.
 */
export const asFlags: OptionNaming = (option) =>
  `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
