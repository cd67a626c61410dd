import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { guarded, warnOnce } from '../../lib/user-code.js';

afterEach(() => void jest.restoreAllMocks());

describe("What is called of the application's", () => {
  it('gives what it gives', () => {
    const tell = jest.fn();
    expect(guarded(() => 1, 2, tell)).toBe(1);
    expect(tell).not.toHaveBeenCalled();
  });

  it('is reported when it throws, and something else is taken', () => {
    const tell = jest.fn();
    const error = new Error('no');
    const fail = () => {
      throw error;
    };
    expect(guarded<number>(fail, 2, tell)).toBe(2);
    expect(tell.mock.calls).toEqual([[error]]);
  });

  it('is reported when its promise rejects', async () => {
    const error = new Error('later');
    const failure = new Promise((resolve) => void guarded(() => Promise.reject(error), undefined, resolve));
    expect(await failure).toBe(error);
  });

  it('is warned of once, and nothing follows when that fails too', () => {
    const warning = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    warnOnce('a', 'first');
    warnOnce('a', 'second');
    expect(warning.mock.calls).toEqual([['first', 'DelayQueueWarning']]);
    warning.mockImplementation(() => {
      throw new Error('nor this');
    });
    warnOnce('b', 'third');
    expect(warning).toHaveBeenCalledTimes(2);
  });
});
