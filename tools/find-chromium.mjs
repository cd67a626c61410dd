// A browser for the stories of the dashboard and the screenshots of the documentation: any Chromium that is there already.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installPackages } from './system-packages.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome', 'microsoft-edge'];
const ELSEWHERE = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
];

export const WAYS_TO_GET_ONE =
  'CHROMIUM=/path/to/chrome names one; apt-get install chromium gets one on Debian, where root has it done by `npm test`';

/** Full path of a Chromium, or undefined. */
export function findChromium(env = process.env) {
  if (env.CHROMIUM) return env.CHROMIUM;
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean);
  const onPath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [...onPath, ...ELSEWHERE].find(isExecutable);
}

/** Installs one where that may be done; otherwise says why there is none. */
export async function obtainChromium({ env = process.env, ...options } = {}) {
  const found = findChromium(env);
  if (found) return found;
  try {
    await installPackages(['chromium'], { env, ...options });
  } catch (error) {
    console.error(`No Chromium: ${error.message}. ${WAYS_TO_GET_ONE}.`);
  }
  return findChromium(env);
}

/** What it is started with: nothing that asks other hosts, and as root without its sandbox, which it refuses to make. */
export function chromiumFlags(isRoot = process.getuid?.() === 0) {
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
  return ['--disable-gpu', '--disable-dev-shm-usage', ...quiet, ...(isRoot ? ['--no-sandbox'] : [])];
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
