/** Values that are thrown and have no text of their own, and ways to throw them from a payload or an option. */

export const THROWN = {
  'an object without a prototype': Object.create(null),
  'an object whose text throws': {
    toString() {
      throw new Error('no text');
    },
  },
  'a symbol': Symbol('thrown'),
};
export const throwing = (what: unknown) => () => {
  throw what;
};
export const getterThrowing = (field: string, what: unknown) =>
  Object.defineProperty({}, field, { enumerable: true, get: throwing(what) });
export const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
