export { RelayDelayed } from './relay-delayed.decorator.js';
export type { RelayOptions, RelayPattern } from './relay-delayed.decorator.js';
export type { RelayConfirm } from './outgoing-message.js';
export { RELAY_HEADERS } from './relay-headers.js';
