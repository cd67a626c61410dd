/**
 * Settings of the types of this library, to be augmented:
 *
 *     declare module 'nestjs-delay-queue' {
 *       interface DelayQueueTypes {
 *         names: 'closed'; // only the names in DelayQueues are queues
 *         codec: Date | bigint; // what the codec of forRoot({ codec }) keeps and JSON does not
 *       }
 *     }
 */
export interface DelayQueueTypes {}

type KeptByCodec = DelayQueueTypes extends { codec: infer Kept } ? Kept : never;

type Deeper<Depth extends 0[]> = [...Depth, 0];

/** What of a payload JSON would change or refuse, down to six levels: types may hold themselves. */
type Lost<Payload, Depth extends 0[] = []> = unknown extends Payload
  ? never
  : Depth['length'] extends 6
    ? never
    : Payload extends KeptByCodec
      ? never
      : Payload extends Date | ReadonlyMap<any, any> | ReadonlySet<any> | bigint
        ? Payload
        : Payload extends ((...args: any[]) => unknown) | { toJSON(): unknown }
          ? never
          : Payload extends readonly (infer Item)[]
            ? Lost<Item, Deeper<Depth>>
            : Payload extends object
              ? { [Key in keyof Payload]-?: Lost<Payload[Key], Deeper<Depth>> }[keyof Payload]
              : never;

/** Anything for a payload that can be stored; else a type that nothing has, and whose name says why. */
export type Storable<Payload> = [Lost<Payload>] extends [never]
  ? unknown
  : { readonly 'JSON does not keep this type: send text or a number, or augment DelayQueueTypes': Lost<Payload> };

/** As a caller may give options: one that is undefined counts as left out, also with `exactOptionalPropertyTypes`. */
export type Given<Options> = {
  [Key in keyof Options]: {} extends Pick<Options, Key> ? Options[Key] | undefined : Options[Key];
};
