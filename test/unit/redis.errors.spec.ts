import { describe, expect, it } from '@jest/globals';
import { RedisFullError, UnavailableError } from '../../lib/index.js';
import {
  isFull,
  isReadOnlyReply,
  isRefusal,
  isTransient,
  replyCode,
  typedError,
} from '../../lib/redis/redis.errors.js';

const HASH = 'f_0123456789abcdef0123456789abcdef01234567';
const READ_ONLY = "READONLY You can't write against a read only replica.";
const FULL = "OOM command not allowed when used memory > 'maxmemory'.";

/** One error inside a script, as the generations of servers word it. */
const WORDINGS: [string, (reply: string) => string][] = [
  ['7.0 and later', (reply) => `${reply} script: 0123456789abcdef0123456789abcdef01234567, on @user_script:1.`],
  ['6.2', (reply) => `ERR Error running script (call to ${HASH}): @user_script:1: -${reply}`],
  [
    '6.2 with a line twice',
    (reply) => `ERR Error running script (call to ${HASH}): @user_script:1: @user_script: 1: -${reply} `,
  ],
  ['no script', (reply) => reply],
];

describe.each(WORDINGS)('an error of a script, as worded by %s, was not recognised', (_, worded) => {
  it('from a replica', () => {
    const error = new Error(worded(READ_ONLY));
    expect([isReadOnlyReply(error), isRefusal(error), isTransient(error), isFull(error)]).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(replyCode(error)).toBe('READONLY');
    expect(typedError(error, 'a step')).toBeInstanceOf(UnavailableError);
  });

  it('from a full server', () => {
    const error = new Error(worded(FULL));
    expect([isReadOnlyReply(error), isRefusal(error), isTransient(error), isFull(error)]).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(typedError(error, 'an enqueue')).toBeInstanceOf(RedisFullError);
  });

  it('from a master without its replicas', () => {
    const error = new Error(worded('NOREPLICAS Not enough good replicas to write.'));
    expect([isRefusal(error), isTransient(error), isFull(error), replyCode(error)]).toEqual([
      true,
      true,
      false,
      'NOREPLICAS',
    ]);
  });

  it('that waiting does not cure', () => {
    const error = new Error(worded('WRONGTYPE Operation against a key holding the wrong kind of value'));
    expect([isRefusal(error), isTransient(error), isFull(error)]).toEqual([false, false, false]);
  });
});

it('what the driver says of a connection that closes is not shown, and is the cause', () => {
  const cause = new Error("Stream isn't writeable and enableOfflineQueue options is false");
  const error = typedError(cause, 'listSchedules("mail")');
  expect(error.message).toBe('Redis could not be reached for listSchedules("mail"): the connection was closed.');
  expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', cause });
});
