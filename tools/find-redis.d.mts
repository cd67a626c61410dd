import type { Tether } from './tether.mjs';

export type RedisWay = 'url' | 'local' | 'container' | 'system';

export interface FoundRedis {
  readonly kind: 'url' | 'local' | 'container';
  readonly url: string;
  readonly description: string;
  readonly passedOver: string[];
}

/** One that was started here, so that it can be ended and started again. */
export interface StartedRedis extends FoundRedis {
  readonly kind: 'local' | 'container';
  readonly port: number;
  kill(signal?: NodeJS.Signals): Promise<void>;
  restart(): Promise<void>;
}

export class RedisNotFound extends Error {
  readonly refusals: string[];
}

export const START_ORDER: RedisWay[];

export function testOrder(env?: NodeJS.ProcessEnv): RedisWay[];

interface FindOptions<Way extends RedisWay> {
  tether: Tether;
  order: Way[];
  flags?: string[];
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal;
  machine?: { isRoot: boolean; isDebian: boolean; servicePolicy: string };
}

export function findRedis(options: FindOptions<Exclude<RedisWay, 'url'>>): Promise<StartedRedis>;
export function findRedis(options: FindOptions<RedisWay>): Promise<FoundRedis>;
