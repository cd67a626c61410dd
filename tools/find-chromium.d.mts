export const WAYS_TO_GET_ONE: string;

export function findChromium(env?: NodeJS.ProcessEnv): string | undefined;

export function obtainChromium(options?: {
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}): Promise<string | undefined>;

export function chromiumFlags(isRoot?: boolean): string[];
