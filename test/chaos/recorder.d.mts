import type { Historian } from './historian.mjs';

/** @returns the token under which a job runs that is just being started here */
export function listenIn(historian: Historian): Promise<(id: string) => number | undefined>;
