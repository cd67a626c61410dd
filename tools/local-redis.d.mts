/** Full path of the first server program on the PATH, or undefined. */
export function serverOnPath(env?: NodeJS.ProcessEnv): string | undefined;
