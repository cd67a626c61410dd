/** What a canvas draws with: the colours of the style sheet, as they are in the present theme. */
export type Colour =
  'accent-fill' | 'warn-fill' | 'warn-soft' | 'bad-fill' | 'good' | 'muted' | 'line' | 'text' | 'card';

/** A custom property is not resolved by `getPropertyValue`; the colour of an element is. */
export function coloursOf(inside: HTMLElement): (name: Colour) => string {
  const known = new Map<Colour, string>();
  return (name) => {
    let colour = known.get(name);
    if (colour === undefined) {
      const probe = document.createElement('i');
      probe.style.color = `var(--${name})`;
      inside.append(probe);
      colour = getComputedStyle(probe).color;
      probe.remove();
      known.set(name, colour);
    }
    return colour;
  };
}

export function fontOf(inside: HTMLElement): string {
  return getComputedStyle(inside).fontFamily;
}
