import type { ChangesOfJson } from '../job/codec.js';
import { quoted } from '../job/duration.js';
import { warnOnce } from '../user-code.js';

/**
 * What JSON does to payloads without an error, because it is no error; but a handler that takes a Date, or calls a method of
 * its payload, would fail.
 */
export class PayloadWarnings implements ChangesOfJson {
  date: ChangesOfJson['date'] = (queue, path) => {
    this.date = undefined;
    warnOnce(
      'dates',
      `Queue "${queue}": ${path} is a Date, of which JSON makes a text: that is what handlers get. Send text or a number, or use ` +
        'devalueCodec(), which keeps Dates. Said once.',
    );
  };

  instance(queue: string, path: string, ofClass: string, member: string): void {
    const name = ofClass === '' ? 'a class without a name' : `the class ${quoted(ofClass).slice(1, -1)}`;
    warnOnce(
      `instance ${ofClass}`,
      `Queue "${queue}": ${path} is of ${name}, of which JSON keeps the fields alone: handlers get a plain object, without ` +
        `${quoted(member).slice(1, -1)}. Send the fields that handlers need; where those alone are meant, give the class a ` +
        'toJSON(), and this is not said. Said once for each class.',
    );
  }
}
