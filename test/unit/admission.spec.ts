import { expect, it } from '@jest/globals';
import { UnknownCodecError } from '../../lib/delay-queue.errors.js';
import { encodeContent } from '../../lib/job/envelope.js';
import type { JobHeader } from '../../lib/job/envelope.js';
import { admit } from '../../lib/worker/admission.js';
import type { Terms } from '../../lib/worker/admission.js';
import type { Claim } from '../../lib/worker/lease-renewal.js';

const NOW = 1_800_000_000_000;
const terms: Terms = {
  queue: 'q',
  attempts: 3,
  isBatch: false,
  payloads: { decode: (body) => JSON.parse(body) },
  extend: () => Promise.resolve(),
};

/** Seven digits of base 79, as the server writes a time. */
function digits(ms: number): string {
  let text = '';
  for (let left = ms; text.length < 7; left = Math.floor(left / 79))
    text = String.fromCharCode(44 + (left % 79)) + text;
  return text;
}

function envelope(header: JobHeader = {}, expiresAt?: number, body = '{"to":"a"}'): string {
  const times = digits(NOW - 5_000) + digits(NOW - 1_000);
  return `1${expiresAt === undefined ? '-' : `x`}${times}${expiresAt === undefined ? '' : digits(expiresAt)}${encodeContent(header, body)}`;
}

function judge(
  text: string,
  attempts: { charged?: number; losses?: number; limit?: number } = {},
  over: Partial<Terms> = {},
) {
  const record = {
    id: 'j',
    dueAt: NOW - 1_000,
    attempts: { charged: 0, losses: 0, snoozes: 0, ...attempts },
    envelope: text,
  };
  return admit(record, {} as Claim, false, NOW, { ...terms, ...over });
}

it('a job that may run becomes a run with the numbers of this attempt', () => {
  const run = judge(envelope(), { charged: 1 });
  expect(run).toMatchObject({ id: 'j', attempt: 2, maxAttempts: 3, ended: false, lost: false, expiresAt: Infinity });
  expect(run).toMatchObject({ job: { payload: { to: 'a' }, latenessMs: 1_000 } });
});

const unknownCodec = () => {
  throw new UnknownCodecError('Codec "zip" is unknown here.');
};

it.each([
  ['no envelope', judge('?'), { verb: 'dead', reason: 'undecodable', charge: false }, /cannot be decoded/],
  ['a payload that is no JSON', judge(envelope({}, undefined, '{')), { reason: 'undecodable' }, /is not valid JSON$/],
  ['a newer layout', judge('3-'), { verb: 'release', dueAt: NOW - 1_000, restMs: 30_000 }, /was left to others/],
  ['an unknown codec', judge(envelope(), {}, { payloads: { decode: unknownCodec } }), { verb: 'release' }, /left to/],
  ['all attempts used', judge(envelope(), { charged: 3 }), { verb: 'dead', reason: 'exhausted' }, /All 3 attempts/],
  ['attempts of its own used', judge(envelope({ attempts: 1 }), { charged: 1 }), { reason: 'exhausted' }, /All 1 /],
  ['one more run used', judge(envelope(), { charged: 1, limit: 1 }), { reason: 'exhausted' }, /All 1 /],
  ['the last lease lost', judge(envelope(), { charged: 3, losses: 1 }), { reason: 'leaseLost' }, /lost its lease/],
  ['expired', judge(envelope({}, NOW - 1)), { verb: 'expired' }, /expired 1 ms before/],
  [
    'expired and to be kept',
    judge(envelope({ keepExpired: true }, NOW - 1)),
    { verb: 'dead', reason: 'expired' },
    /expired/,
  ],
  ['used up and expired', judge(envelope({}, NOW - 1), { charged: 3 }), { reason: 'exhausted' }, /All 3 attempts/],
])('%s: it does not run', (_, judged, settlement, line) => {
  expect(judged).toMatchObject({ settlement });
  expect('line' in judged && judged.line).toMatch(line);
});

it('a job may run until the moment at which it expires', () => {
  expect(judge(envelope({}, NOW))).toMatchObject({ id: 'j', expiresAt: NOW });
});
