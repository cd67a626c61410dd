import type { RelayHeaders } from './relay-headers.js';

/**
 * When a job is done: `'broker'` once a broker has confirmed the message, `'reply'` once the receiver's handler has
 * answered, `'none'` once the client has taken the message, which proves nothing.
 */
export type RelayConfirm = 'broker' | 'reply' | 'none';

export interface OutgoingMessage {
  readonly data: unknown;
  readonly id: string;
  readonly headers: RelayHeaders;
  readonly confirm: RelayConfirm;
}
