/** The folder of a server, for PATH; fetches it first where it is not there yet. */
export function serverFolder(name: 'redis-6.0' | 'valkey-8.0' | 'redis-8.0'): string;
