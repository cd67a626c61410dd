/** On the prototype of each class below: its name. Of the registry of symbols, which all copies of the package share. */
const KIND = Symbol.for('nestjs-delay-queue:kind');

/**
 * An application may load this package twice: in two versions, or through `import` and `require`. Each copy has classes of
 * its own, and to `instanceof` what one of them threw is a stranger to the other: a `DiscardJob` would be retried. So these
 * classes know their kind by its name. Classes that extend them are left alone.
 *
 * @param classes by the names that they have in every version
 */
export function knownAcrossCopies(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, own] of Object.entries(classes)) {
    Object.defineProperty(own.prototype, KIND, { value: name });
    Object.defineProperty(own, Symbol.hasInstance, {
      value: function (this: unknown, value: unknown): boolean {
        return Function.prototype[Symbol.hasInstance].call(this, value) || (this === own && isOfKind(value, name));
      },
    });
  }
}

function isOfKind(value: unknown, name: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (let kind = Object.getPrototypeOf(value); kind !== null; kind = Object.getPrototypeOf(kind)) {
    if (Object.getOwnPropertyDescriptor(kind, KIND)?.value === name) return true;
  }
  return false;
}
