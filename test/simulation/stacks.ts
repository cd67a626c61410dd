import path from 'node:path';

/** Each frame costs time for each error, and the library makes one for each call that may fail. */
const MOST_FRAMES = 4;

/**
 * The stack of an error is stored with its job, and its length is part of the trace. So it tells neither where the project lies nor
 * what is inside of Node: a seed does the same in each folder and on each version.
 */
export function namelessStacks(): void {
  Error.stackTraceLimit = MOST_FRAMES;
  Error.prepareStackTrace = (error, sites) => {
    const frames = sites.filter((site) => site.getFileName()?.startsWith('node:') === false);
    return [String(error), ...frames.map(shown)].join('\n');
  };
}

function shown(site: NodeJS.CallSite): string {
  const place = `${path.basename(site.getFileName() ?? '')}:${site.getLineNumber() ?? 0}`;
  return `    at ${site.getFunctionName() ?? ''} (${place})`;
}
