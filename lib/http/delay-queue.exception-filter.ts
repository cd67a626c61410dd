import { Catch, Logger } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { BulkEnqueueError, DelayQueueError, SchemaError } from '../delay-queue.errors.js';
import type { DelayQueueErrorCode } from '../delay-queue.errors.js';

/** What a caller may change about his request, and what passes. All else is a mistake of the application: 500. */
const STATUSES: Readonly<Partial<Record<DelayQueueErrorCode, number>>> = {
  ERR_DQ_SCHEMA: 400,
  ERR_DQ_PAYLOAD: 400,
  ERR_DQ_INVALID_DELAY: 400,
  ERR_DQ_INVALID_ID: 400,
  ERR_DQ_DUPLICATE_JOB: 409,
  ERR_DQ_PAYLOAD_TOO_LARGE: 413,
  ERR_DQ_UNAVAILABLE: 503,
  ERR_DQ_CONNECTION: 503,
  ERR_DQ_CLOSED: 503,
  ERR_DQ_BACK_PRESSURE: 503,
  ERR_DQ_QUEUE_FULL: 503,
  ERR_DQ_PUBLISHING_PAUSED: 503,
  ERR_DQ_REDIS_FULL: 503,
  ERR_DQ_NOT_DURABLE: 503,
};
const RETRY_AFTER_S = '1';

/** What the responses of Express and Fastify have in common. */
interface Response {
  status(code: number): { send(body: object): unknown };
  header(name: string, value: string): unknown;
  readonly headersSent?: boolean;
  readonly sent?: boolean;
}

/**
 * Answers HTTP requests whose handler failed with an error of this library: what was refused because of its content with
 * 400, what cannot be done at the moment with 503. In `main.ts`:
 *
 *     app.useGlobalFilters(new DelayQueueExceptionFilter());
 *
 * Works with Express and Fastify. Elsewhere than in HTTP, such as in a job, the error goes on as it is.
 */
@Catch(DelayQueueError)
export class DelayQueueExceptionFilter implements ExceptionFilter<DelayQueueError> {
  catch(error: DelayQueueError, host: ArgumentsHost): void {
    if (host.getType() !== 'http') throw error;
    const response = host.switchToHttp().getResponse<Response>();
    if (response.headersSent || response.sent) return;
    const statusCode = statusOf(error);
    if (statusCode === 500) new Logger('ExceptionsHandler').error(error);
    if (statusCode === 503 && error.retryable) response.header('Retry-After', RETRY_AFTER_S);
    response.status(statusCode).send(bodyOf(error, statusCode));
  }
}

function statusOf(error: DelayQueueError): number {
  const decisive = error instanceof BulkEnqueueError && error.cause instanceof DelayQueueError ? error.cause : error;
  return STATUSES[decisive.code] ?? 500;
}

/** Server errors tell nothing of the server: their messages name hosts and settings. */
function bodyOf(error: DelayQueueError, statusCode: number): object {
  const reason = STATUS_CODES[statusCode];
  if (statusCode === 500) return { statusCode, message: 'Internal server error' };
  if (statusCode === 503) return { statusCode, error: reason, code: error.code, message: 'Try again later.' };
  if (error instanceof SchemaError) {
    const message = error.issues.map((issue) => `${issue.path}: ${issue.message}`);
    return { statusCode, error: reason, code: error.code, message, issues: error.issues };
  }
  return { statusCode, error: reason, code: error.code, message: error.message };
}
