const slots = new Map<string, number>();

/** The slot of a key: CRC-16/XMODEM of its hash tag. Written anew here, because the library's own is part of what is tried. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const tag = close > open + 1 ? key.slice(open + 1, close) : key;
  let slot = slots.get(tag);
  if (slot === undefined) slots.set(tag, (slot = crc16(tag) % 16_384));
  return slot;
}

function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc;
}
