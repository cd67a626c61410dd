import { expect, it } from '@jest/globals';
import { candidatesOf } from '../../../lib/cli/completion/candidates.js';
import { createProgram } from '../../../lib/cli/program.js';

it.each<[string, string[], boolean]>([
  ['re', ['reschedule', 'requeue', 'remove-dead', 'resume', 'resume-publishing', 'reshard'], false],
  ['schedules p', ['pause'], false],
  ['list ', [], true],
  ['--redis redis://x list ', [], true],
  ['list queues --state d', ['delayed', 'due', 'dead'], false],
  ['list q --sta', ['--state'], false],
  ['list q --red', ['--redis'], false],
  ['cancel q ', [], false],
  ['move q ', [], true],
  ['completion b', ['bash'], false],
  ['__', [], false],
])('behind "%s" may come %j', (line, words, queues) => {
  const found = candidatesOf(createProgram(), line.split(' '));
  expect([new Set(found.words), found.queues]).toEqual([new Set(words), queues]);
});
