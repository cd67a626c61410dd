import type { DelayedJob } from '../job/delayed-job.js';

/** A type that cannot be a whole payload that is an object, but a property of it. */
type Primitive = string | number | boolean | bigint | symbol | null | undefined;

/** What `@JobPayload('property')` may give: of a batch an array of them. */
type PropertyOf<Payload> = Payload extends readonly (infer Item)[]
  ? Item extends object
    ? Item[keyof Item] extends infer Value
      ? Value extends unknown
        ? Value[]
        : never
      : never
    : never
  : Payload extends object
    ? Payload[keyof Payload]
    : never;

/** True if the parameter takes the payload, a property of it, or the job. */
type Fits<Parameter, Payload, Job> = [Payload] extends [Parameter]
  ? true
  : [Job] extends [Parameter]
    ? true
    : Payload extends readonly unknown[]
      ? PropertyFits<Parameter, Payload>
      : Payload extends object
        ? [Parameter] extends [Primitive]
          ? true
          : PropertyFits<Parameter, Payload>
        : false;

type PropertyFits<Parameter, Payload> =
  PropertyOf<Payload> extends infer Value ? (Value extends Parameter ? true : false) : never;

type AnyFits<Parameters extends readonly unknown[], Payload, Job> = Parameters extends readonly [
  infer First,
  ...infer Others,
]
  ? true extends Fits<First, Payload, Job>
    ? true
    : AnyFits<Others, Payload, Job>
  : Parameters extends readonly []
    ? false
    : true extends Fits<Parameters[number], Payload, Job>
      ? true
      : false;

type Takes<Method, Payload, Job> = Method extends (...args: infer Given) => unknown
  ? Required<Given> extends readonly []
    ? true
    : AnyFits<Required<Given>, Payload, Job>
  : true;

/**
 * The decorator of a handler. Where the payload of the queue is typed, at least one parameter of the method must take it, a
 * property of it, or the job: TypeScript does not show which parameter has `@JobPayload()` or a decorator of your own.
 * Where a decorator is composed, `OnDelayed(queue) as MethodDecorator` asks for nothing.
 */
export type HandlerDecorator<Payload, Received = Payload, Job = DelayedJob<Payload>> = unknown extends Payload
  ? MethodDecorator
  : <Method>(
      target: object,
      method: string | symbol,
      descriptor: TypedPropertyDescriptor<Method> &
        (Takes<Method, Received, Job> extends true
          ? unknown
          : { readonly 'no parameter takes the payload of the queue': Received }),
    ) => void;
