import { Module } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { DelayQueueInstances, DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import { shardsToken } from '../delay-queue.tokens.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { OpenTelemetryTracer } from './open-telemetry.tracer.js';

/** Spans for OpenTelemetry, of all instances. Import it once, in the root module; the SDK is the application's. */
@Module({ imports: [DelayQueueInstancesModule] })
export class DelayQueueTracingModule implements OnModuleInit {
  constructor(
    private readonly modules: ModuleRef,
    private readonly instances: DelayQueueInstances,
  ) {}

  onModuleInit(): void {
    const tracer = new OpenTelemetryTracer();
    for (const instance of this.instances.names) {
      this.modules.get<InstanceContext>(shardsToken(instance), { strict: false }).tracer = tracer;
    }
  }
}
