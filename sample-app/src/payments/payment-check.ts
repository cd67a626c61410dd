import { IsUUID } from 'class-validator';
import { defineQueue, exponential } from 'nestjs-delay-queue';

/** A class, not an interface: only a class tells the validation pipe what to check. */
export class CheckPayment {
  @IsUUID()
  paymentId!: string;
}

export const paymentCheck = defineQueue<CheckPayment>('payment.check', {
  attempts: 5,
  backoff: exponential('1s', { max: '1m', jitter: 0.2 }),
  timeout: '30s',
});
