import { describe, expect, it } from '@jest/globals';
import { InvalidQueueError } from '../../lib/delay-queue.errors.js';
import { assertQueueName } from '../../lib/job/queue-name.js';

describe('a queue name', () => {
  it.each([
    ['the usual', 'payment.check'],
    ['one character', 'q'],
    ['128 characters', 'q'.repeat(128)],
    ['128 characters of two units each', '🚀'.repeat(128)],
    ['inner spaces', 'send mail'],
    ['colons, slashes and quotes', `a:b/c"d'e\\f*g`],
    ['a URL that can have no password', 'https://example.com/jobs'],
    ['other scripts', 'płatność-支付-דחוי'],
    ['what objects have anyway', '__proto__'],
  ])('may be %s', (_, name) => {
    expect(assertQueueName(name)).toBe(name);
  });

  it.each([
    ['empty', ''],
    ['129 characters', 'q'.repeat(129)],
    ['129 characters of two units each', '🚀'.repeat(129)],
    ['huge', 'q'.repeat(1e6)],
    ['an opening brace', 'a{b'],
    ['a closing brace', 'a}b'],
    ['a leading space', ' q'],
    ['a trailing space', 'q '],
    ['a space alone', ' '],
    ['a no-break space at the end', 'q\u00a0'],
    ['a byte order mark at the start', '\ufeffq'],
    ['a line feed', 'a\nb'],
    ['a tabulator', 'a\tb'],
    ['NUL', 'a\0b'],
    ['DEL', 'a\x7fb'],
    ['a C1 control', 'a\x9bb'],
    ['a line separator', 'a\u2028b'],
    ['a high surrogate alone', 'a\ud83d'],
    ['a low surrogate alone', '\ude00a'],
    ['surrogates in the wrong order', '\ude00\ud83d'],
    ['a URL with a password', 'redis://user:secret@host:6379'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 5],
    ['an array', ['q']],
    ['a String object', new String('q')],
  ])('is not %s', (_, name) => {
    expect(() => assertQueueName(name)).toThrow(InvalidQueueError);
  });

  it('is named in the error, short and without control characters', () => {
    expect(() => assertQueueName('a{b')).toThrow(
      'Queue name: "a{b" holds braces, control characters or half a surrogate pair. ' +
        'Use 1 to 128 printable characters without braces.',
    );
    expect(() => assertQueueName('\x1b[31m', '@OnDelayed() on A.b')).toThrow(/^@OnDelayed\(\) on A\.b: "\\u001b\[31m"/);
  });

  it('that is a URL is not shown, which would tell its password', () => {
    expect(() => assertQueueName('redis://user:secret@host')).toThrow(
      'Queue name: "redis://…" is a URL. Use 1 to 128 printable characters without braces.',
    );
  });
});
