// The dashboard over HTTP on either adapter: its page as the package has it, a file of the page, and an act.
import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DelayQueueModule, DelayQueueProducer } from 'nestjs-delay-queue';
import { DelayQueueDashboardModule } from 'nestjs-delay-queue/dashboard';

@Module({
  imports: [
    DelayQueueModule.forRoot({ connection: 'memory://', shutdownHooksWarning: false }),
    DelayQueueDashboardModule.forRoot({ path: 'jobs', access: () => ({ user: 'ada', level: 'write' }) }),
  ],
})
class BoardModule {}

/** @returns what each adapter answered */
export async function tryTheDashboard(): Promise<Record<string, unknown>> {
  const logger = ['warn', 'error'] as ('warn' | 'error')[];
  return {
    express: await answersOf(await NestFactory.create(BoardModule, new ExpressAdapter(), { logger })),
    fastify: await answersOf(await NestFactory.create(BoardModule, new FastifyAdapter() as never, { logger })),
  };
}

async function answersOf(app: INestApplication): Promise<unknown> {
  app.setGlobalPrefix('v1');
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as { port: number };
  const home = `http://127.0.0.1:${port}/v1/jobs/`;
  await app.get(DelayQueueProducer).enqueue('package.board', 1, { id: 'A', delay: '1h' });
  const [bare, page] = [await fetch(home.slice(0, -1)), await fetch(home)];
  const html = await page.text();
  const script = /src="\.?\/?(assets\/[^"]+\.js)"/.exec(html)?.[1];
  const file = await fetch(new URL(script ?? 'none', home));
  const me = (await (await fetch(`${home}api/me`)).json()) as { user: string };
  const act = await fetch(`${home}api/jobs/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: `http://127.0.0.1:${port}` },
    body: JSON.stringify({ queue: 'package.board', ids: ['A'] }),
  });
  const { results } = (await act.json()) as { results: { outcome: string }[] };
  const statuses = [bare.status, page.status, file.status, act.status];
  await app.close();
  return { statuses, user: me.user, outcome: results[0]?.outcome };
}
