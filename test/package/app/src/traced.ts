import { INVALID_SPAN_CONTEXT, trace } from '@opentelemetry/api';

/** Names of the spans that were started, by a tracer that keeps nothing else. */
export function spansOfNow(): string[] {
  const names: string[] = [];
  const startSpan = (name: string) => {
    names.push(name);
    return trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan: startSpan as never }) });
  return names;
}
