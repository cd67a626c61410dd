import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { DelayQueueProducer } from 'nestjs-delay-queue';
import type { CancelResult, Duration } from 'nestjs-delay-queue';
import { randomUUID } from 'node:crypto';
import { paymentCheck } from './payment-check.js';

export interface Payment {
  readonly id: string;
  readonly amount: number;
  status: 'pending' | 'confirmed' | 'expired' | 'cancelled';
  /** How often the gateway was asked, errors included. */
  checks: number;
}

/** Keeps payments in memory, where a real application has its database. */
@Injectable()
export class PaymentsService {
  private readonly payments = new Map<string, Payment>();

  constructor(private readonly queue: DelayQueueProducer) {}

  async create(amount: number, checkIn: Duration): Promise<{ payment: Payment; check: { id: string; dueAt: Date } }> {
    const payment: Payment = { id: randomUUID(), amount, status: 'pending', checks: 0 };
    this.payments.set(payment.id, payment); // first, for a check that is due at once
    try {
      // One check per payment, so the payment's id will do as the job's, and need not be remembered for cancel().
      const { id, dueAt } = await this.queue.enqueue(
        paymentCheck,
        { paymentId: payment.id },
        { id: payment.id, delay: checkIn },
      );
      return { payment, check: { id, dueAt } };
    } catch (error) {
      this.payments.delete(payment.id);
      throw error;
    }
  }

  find(id: string): Payment | undefined {
    return this.payments.get(id);
  }

  get(id: string): Payment {
    const payment = this.find(id);
    if (!payment) throw new NotFoundException(`There is no payment ${id}`);
    return payment;
  }

  async cancel(id: string): Promise<Payment> {
    const payment = this.get(id);
    if (payment.status === 'pending') {
      const { outcome } = await this.queue.cancel(paymentCheck, id);
      if (outcome === 'cancelled') payment.status = 'cancelled';
      else if (payment.status === 'pending') throw new ConflictException(`Payment ${id} ${WHY_NOT[outcome]}`);
    }
    if (payment.status !== 'cancelled') throw new ConflictException(`Payment ${id} is ${payment.status} already`);
    return payment;
  }
}

const WHY_NOT: Record<Exclude<CancelResult['outcome'], 'cancelled'>, string> = {
  running: 'is being checked at this moment',
  dead: 'could not be checked: its check is a dead letter',
  notFound: 'has no pending check',
};
