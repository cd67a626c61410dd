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

/** Of one run or of a batch, with whatever payload. */
type IsJob<Parameter> = 0 extends 1 & Parameter
  ? false
  : [Parameter] extends [DelayedJob<any> | readonly DelayedJob<any>[]]
    ? true
    : false;

/** False if a parameter is a job of another kind than the method gets: of another payload, one instead of many, many instead of one. */
type JobsFit<Parameters extends readonly unknown[], Job> = Parameters extends readonly [infer First, ...infer Others]
  ? IsJob<First> extends true
    ? [Job] extends [First]
      ? JobsFit<Others, Job>
      : false
    : JobsFit<Others, Job>
  : true;

/** What stands in the way; `unknown` for nothing. */
type ProblemOf<Parameters extends readonly unknown[], Payload, Job> = Parameters extends readonly []
  ? unknown
  : IsJob<Parameters[0]> extends true
    ? { readonly 'the payload comes first, then the job': [payload: Payload, job: Job] }
    : JobsFit<Parameters, Job> extends false
      ? { readonly 'the job of this queue is another one': Job }
      : AnyFits<Parameters, Payload, Job> extends true
        ? unknown
        : { readonly 'no parameter takes the payload of the queue': Payload };

type Problem<Method, Payload, Job> = Method extends (...args: infer Given) => unknown
  ? ProblemOf<Required<Given>, Payload, Job>
  : unknown;

/**
 * The decorator of a handler. Where the payload of the queue is typed, at least one parameter of the method must take it, a
 * property of it, or the job, and the first one must not be the job: TypeScript does not show which parameter has `@JobPayload()`,
 * `@Job()` or a decorator of your own.
 * Where a decorator is composed, or `@Job()` comes first, `OnDelayed(queue) as MethodDecorator` asks for nothing.
 */
export type HandlerDecorator<Payload, Received = Payload, Job = DelayedJob<Payload>> = unknown extends Payload
  ? MethodDecorator
  : <Method>(
      target: object,
      method: string | symbol,
      descriptor: TypedPropertyDescriptor<Method> & Problem<Method, Received, Job>,
    ) => void;
