import { BadRequestException, Catch, ServiceUnavailableException } from '@nestjs/common';
import type { ArgumentsHost } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { DelayQueueError, InvalidDelayError } from 'nestjs-delay-queue';

/** Says in HTTP whose fault it was. Redis' address, which some messages name, stays in the log. */
@Catch(DelayQueueError)
export class DelayQueueErrorFilter extends BaseExceptionFilter {
  override catch(error: DelayQueueError, host: ArgumentsHost): void {
    super.catch(httpErrorFor(error), host);
  }
}

function httpErrorFor(error: DelayQueueError) {
  if (error instanceof InvalidDelayError) return new BadRequestException(`checkIn: ${error.message}`);
  if (error.retryable) return new ServiceUnavailableException('Checks cannot be scheduled right now. Try again later.');
  return error;
}
