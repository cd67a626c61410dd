/** The payload of every job of every library: 75 bytes of JSON. */
export function payload(n) {
  return { paymentId: `payment-${String(n).padStart(20, '0')}`, amount: 1999, currency: 'EUR' };
}
