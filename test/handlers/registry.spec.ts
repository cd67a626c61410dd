import { describe, expect, it } from '@jest/globals';
import { DuplicateHandlerError } from '../../lib/delay-queue.errors.js';
import type { Handler } from '../../lib/handlers/handler.js';
import { HandlerRegistry, type RegistryChange } from '../../lib/handlers/handler.registry.js';

const aHandler = (queue: string, name = `Handlers.${queue}`): Handler => ({
  queue,
  name,
  options: {},
  invoke: async () => ({ kind: 'completed' }),
});

describe('HandlerRegistry', () => {
  it('gives the handler of a queue, and all of them', () => {
    const registry = new HandlerRegistry();
    const [a, b] = [aHandler('a'), aHandler('b')];
    registry.add(a);
    registry.add(b);
    expect(registry.get('a')).toBe(a);
    expect(registry.get('c')).toBeUndefined();
    expect(registry.all()).toEqual([a, b]);
  });

  it('refuses a second handler for a queue naming both, and keeps the first', () => {
    const registry = new HandlerRegistry();
    const first = aHandler('a', 'One.check');
    registry.add(first);
    const add = () => registry.add(aHandler('a', 'Two.check'));
    expect(add).toThrow(DuplicateHandlerError);
    expect(add).toThrow(/"a".*One\.check.*Two\.check/);
    expect(registry.get('a')).toBe(first);
  });

  it('lets a queue be handled again once its handler was removed', () => {
    const registry = new HandlerRegistry();
    const first = aHandler('a');
    registry.add(first);
    expect(registry.remove('a')).toBe(first);
    expect(registry.remove('a')).toBeUndefined();
    registry.add(aHandler('a', 'Two.check'));
    expect(registry.get('a')?.name).toBe('Two.check');
  });

  it('tells its listeners what changed, until they leave', () => {
    const registry = new HandlerRegistry();
    const a = aHandler('a');
    const heard: RegistryChange[] = [];
    const leave = registry.onChange((change) => heard.push(change));
    registry.add(a);
    expect(() => registry.add(a)).toThrow(DuplicateHandlerError);
    registry.remove('a');
    registry.remove('a');
    leave();
    registry.add(a);
    expect(heard).toEqual([
      { kind: 'added', handler: a },
      { kind: 'removed', handler: a },
    ]);
  });

  it('has made the change by the time it tells of it', () => {
    const registry = new HandlerRegistry();
    const known: number[] = [];
    registry.onChange(() => known.push(registry.all().length));
    registry.add(aHandler('a'));
    registry.remove('a');
    expect(known).toEqual([1, 0]);
  });
});
