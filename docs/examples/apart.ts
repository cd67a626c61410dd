// An API that only produces, a process that only works, and a 400 for a payload that a schema refuses.
import { BadRequestException, Body, Catch, Controller, Injectable, Module, Post } from '@nestjs/common';
import type { ArgumentsHost, INestApplicationContext } from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter, NestFactory } from '@nestjs/core';
import {
  defineQueue,
  DelayQueue,
  DelayQueueModule,
  InjectQueue,
  isDelayQueueContext,
  OnDelayed,
  SchemaError,
} from 'nestjs-delay-queue';
import type { StandardSchema } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

const letter: StandardSchema<{ to: string }> = {
  '~standard': {
    version: 1,
    vendor: 'example',
    validate: (value) =>
      typeof (value as { to?: unknown }).to === 'string'
        ? { value: value as { to: string } }
        : { issues: [{ message: 'must be text', path: ['to'] }] },
  },
};

// What both processes share: definitions, and no code of either.
export const letters = defineQueue('letter.send', { schema: letter, attempts: 3 });

/** Whoever sends such a body learns what is wrong with it. In a job it stays the failure of an attempt. */
@Catch(SchemaError)
export class RefusedPayloadFilter extends BaseExceptionFilter {
  override catch(error: SchemaError, host: ArgumentsHost) {
    if (isDelayQueueContext(host)) throw error;
    super.catch(new BadRequestException({ message: error.message, issues: error.issues }), host);
  }
}

@Controller('letters')
export class LettersController {
  constructor(@InjectQueue(letters) private readonly queue: DelayQueue<{ to: string }>) {}

  @Post()
  async send(@Body() body: { to: string }) {
    const { id } = await this.queue.enqueue(body);
    return { id };
  }
}

/** The API. `consume: false`: handlers that it may have do not run here. */
@Module({
  imports: [DelayQueueModule.forFeature([letters]), DelayQueueModule.forRoot({ ...redis, consume: false })],
  controllers: [LettersController],
  providers: [{ provide: APP_FILTER, useClass: RefusedPayloadFilter }],
})
export class ApiModule {}

@Injectable()
export class LetterHandler {
  readonly sent: string[] = [];

  @OnDelayed(letters)
  send({ to }: { to: string }) {
    this.sent.push(to);
  }
}

/** The worker: `NestFactory.createApplicationContext(WorkerModule)`, and no port. */
@Module({ imports: [DelayQueueModule.forRoot(redis)], providers: [LetterHandler] })
export class WorkerModule {}

export { WorkerModule as AppModule };

export async function run(worker: INestApplicationContext) {
  const api = await NestFactory.create(ApiModule, { logger: false });
  await api.listen(0, '127.0.0.1');
  const url = await api.getUrl();
  const post = (body: object) =>
    fetch(`${url}/letters`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const accepted = await post({ to: 'ada' });
  const refused = await post({ to: 7 });
  const { issues } = (await refused.json()) as { issues: unknown };
  const { sent } = worker.get(LetterHandler);
  await until(() => sent.length === 1);
  await api.close();
  return {
    statuses: [accepted.status, refused.status], // [201, 400]
    issues, // [{ message: 'must be text', path: 'payload.to' }]
    sent, // ['ada']
  };
}
