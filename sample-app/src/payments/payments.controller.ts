import { Body, Controller, Delete, Get, Param, Post, UseFilters } from '@nestjs/common';
import { DelayQueueErrorFilter } from './delay-queue-error.filter.js';
import { CreatePaymentDto } from './dto/create-payment.dto.js';
import { PaymentsService } from './payments.service.js';
import type { Payment } from './payments.service.js';

@Controller('payments')
@UseFilters(DelayQueueErrorFilter)
export class PaymentsController {
  constructor(private readonly payments: PaymentsService) {}

  @Post()
  async create(@Body() { amount, checkIn }: CreatePaymentDto) {
    const { payment, check } = await this.payments.create(amount, checkIn);
    return { id: payment.id, status: payment.status, check };
  }

  @Get(':id')
  show(@Param('id') id: string) {
    return view(this.payments.get(id));
  }

  /** Cancels the check that is pending. Asked twice, it answers the same. */
  @Delete(':id')
  async cancel(@Param('id') id: string) {
    return view(await this.payments.cancel(id));
  }
}

function view({ id, status, checks }: Payment) {
  return { id, status, checks };
}
