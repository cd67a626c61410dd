import { Injectable, Logger } from '@nestjs/common';
import { DelayedJob, DiscardJob, Job, JobPayload, OnDelayed, SnoozeJob } from 'nestjs-delay-queue';
import { CheckPayment, paymentCheck } from './payment-check.js';
import { PaymentGateway } from './payment-gateway.js';
import { PaymentsService } from './payments.service.js';

const CHECK_AGAIN_IN = '2s';
/** A payment that has not settled by then counts as expired. */
const MAX_SNOOZES = 4;

@Injectable()
export class PaymentsHandlers {
  private readonly logger = new Logger(PaymentsHandlers.name);

  constructor(
    private readonly payments: PaymentsService,
    private readonly gateway: PaymentGateway,
  ) {}

  /** An error of the gateway is simply thrown: the queue tries again after its backoff. */
  @OnDelayed(paymentCheck)
  async check(@JobPayload() { paymentId }: CheckPayment, @Job() job: DelayedJob): Promise<void> {
    const payment = this.payments.find(paymentId);
    if (!payment) throw new DiscardJob(`There is no payment ${paymentId}: payments do not outlive the process`);
    if (payment.status !== 'pending') return; // jobs run at least once, so perhaps twice

    payment.checks++;
    const settled = await this.gateway.hasSettled(payment, job.signal);
    if (!settled && job.snoozes < MAX_SNOOZES) throw new SnoozeJob(CHECK_AGAIN_IN);
    payment.status = settled ? 'confirmed' : 'expired';
    this.logger.log(`Payment ${paymentId} is ${payment.status} after ${payment.checks} checks`);
  }
}
