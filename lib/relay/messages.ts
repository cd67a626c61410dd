import { MqttRecord, NatsRecord, RmqRecord } from '@nestjs/microservices';
import type { OutgoingMessage } from './outgoing-message.js';
import type { RelayHeaders } from './relay-headers.js';

// What each client is given so that its message lasts and says which job it is of. A method may return a record of
// @nestjs/microservices: its own options count before those of here.

/** AMQP stores it with one byte for its length. */
const MESSAGE_ID_BYTES = 255;

/** As it is: nothing can be said beside it. */
export function plainMessage({ data }: OutgoingMessage): unknown {
  return data;
}

/** Persistent, which a message of Nest is not by itself: a broker that restarts would drop it after it has confirmed it. */
export function rmqRecord({ data, id, headers }: OutgoingMessage): RmqRecord {
  const given = data instanceof RmqRecord ? data : new RmqRecord(data);
  const messageId = Buffer.byteLength(id) <= MESSAGE_ID_BYTES ? id : undefined;
  return new RmqRecord(given.data, {
    persistent: true,
    ...(messageId !== undefined && { messageId }),
    ...given.options,
    headers: { ...headers, ...given.options?.headers },
  });
}

/** Always as a message of Kafka: Nest would take a payload with a property `key` or `value` for one. */
export function kafkaMessage({ data, id, headers }: OutgoingMessage): object {
  return { key: id, value: data, headers: { ...headers } };
}

/** With QoS 1 at least, where anything is to be proved: QoS 0, which Nest takes by itself, is never acknowledged. */
export function mqttRecord({ data, headers, confirm }: OutgoingMessage): MqttRecord {
  const given = data instanceof MqttRecord ? data : new MqttRecord(data);
  const { qos = 0, properties, ...options } = given.options ?? {};
  return new MqttRecord(given.data, {
    ...options,
    qos: confirm === 'none' ? qos : qos || 1,
    properties: { ...properties, userProperties: { ...headers, ...properties?.userProperties } },
  });
}

/** Headers as the driver makes them. */
interface NatsHeaders {
  has(name: string): boolean;
  set(name: string, value: string): void;
}

export async function natsRecord({ data, headers }: OutgoingMessage): Promise<NatsRecord> {
  const given = data instanceof NatsRecord ? (data as NatsRecord<unknown, NatsHeaders>) : undefined;
  const own = given?.headers ?? (await natsHeaders());
  if (own) addMissing(own, headers);
  return new NatsRecord(given ? given.data : data, own);
}

function addMissing(own: NatsHeaders, headers: RelayHeaders): void {
  for (const [name, value] of Object.entries(headers)) if (!own.has(name)) own.set(name, value);
}

/** Undefined with the driver of Nest 11, which has another name. */
async function natsHeaders(): Promise<NatsHeaders | undefined> {
  try {
    const { headers } = await import('@nats-io/transport-node');
    return headers();
  } catch {
    return undefined;
  }
}
