import { Controller, Get, Param, Post, Query } from '@nestjs/common';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':id')
  place(@Param('id') id: string, @Query('patience') patience?: string) {
    return this.orders.place(id, patience);
  }

  @Post(':id/payment')
  pay(@Param('id') id: string) {
    return this.orders.pay(id);
  }

  @Get(':id')
  show(@Param('id') id: string) {
    return this.orders.orders.get(id);
  }
}
