import { Module } from '@nestjs/common';
import { PaymentGateway } from './payment-gateway.js';
import { PaymentsController } from './payments.controller.js';
import { PaymentsHandlers } from './payments.handlers.js';
import { PaymentsService } from './payments.service.js';

@Module({
  controllers: [PaymentsController],
  providers: [PaymentsService, PaymentsHandlers, PaymentGateway],
})
export class PaymentsModule {}
