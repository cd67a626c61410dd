import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Payment } from './payments.service.js';

/** Stands in for a payment provider. As in the sandboxes of real ones, the amount chooses the case: see the README. */
@Injectable()
export class PaymentGateway {
  async hasSettled({ amount, checks }: Payment, signal: AbortSignal): Promise<boolean> {
    const scene = Math.floor(amount / 10) % 10;
    const n = amount % 10;
    switch (scene) {
      case 1:
        return checks > n;
      case 2:
        if (checks <= n) throw new Error('The payment gateway answered 502');
        return true;
      case 3:
        return false;
      case 4:
        await sleep(n * 1000, undefined, { signal });
        return true;
      default:
        return true;
    }
  }
}
