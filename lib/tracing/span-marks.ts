import { isSpanContextValid, ROOT_CONTEXT, propagation, trace } from '@opentelemetry/api';
import type { Link, Span, SpanContext } from '@opentelemetry/api';
import type { TraceCarrier } from '../delay-queue.tracer.js';

/** Baggage may be 8 KiB, and every job would carry it. */
const CARRIER_MAX = 4_096;
const MARK = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** What fits; the trace itself first. Undefined when there is nothing to carry. */
export function bounded(carrier: Record<string, string>): TraceCarrier | undefined {
  const kept: Record<string, string> = {};
  let length = 0;
  const first = (name: string) => (name === 'traceparent' ? 0 : name === 'tracestate' ? 1 : 2);
  for (const name of Object.keys(carrier).sort((a, b) => first(a) - first(b))) {
    const value = carrier[name];
    if (typeof value !== 'string' || length + name.length + value.length > CARRIER_MAX) continue;
    length += name.length + value.length;
    kept[name] = value;
  }
  return length === 0 ? undefined : kept;
}

/** A span as text, in the form of `traceparent`. */
export function markOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (!isSpanContextValid(span.spanContext())) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

export function linkTo(mark: string | undefined): Link | undefined {
  const [, traceId, spanId, flags] = MARK.exec(mark ?? '') ?? [];
  if (!traceId || !spanId) return undefined;
  return { context: { traceId, spanId, traceFlags: parseInt(flags!, 16), isRemote: true } };
}

/** The span that enqueued the job. */
export function creatorIn(carrier: TraceCarrier | undefined): SpanContext | undefined {
  return carrier && trace.getSpanContext(propagation.extract(ROOT_CONTEXT, carrier));
}
