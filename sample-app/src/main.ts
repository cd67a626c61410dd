import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { readPort } from './port.js';

const logger = new Logger('SampleApp');

async function bootstrap(): Promise<void> {
  const port = readPort(process.env['PORT']);
  const app = await NestFactory.create(AppModule);
  // Without these hooks a SIGTERM would cut running checks off. By default Nest then dies of the signal; this exits with 0.
  app.enableShutdownHooks([], { useProcessExit: true });
  try {
    await app.listen(port);
  } catch (error) {
    await app.close(); // the worker has started already, so it hands back what it claimed
    throw error;
  }
  const url = await app.getUrl();
  logger.log(`Listening on ${url}`);
  const body = '{"amount": 1999, "checkIn": "2s"}';
  logger.log(`Try: curl -X POST ${url}/payments -H 'content-type: application/json' -d '${body}'`);
}

bootstrap().catch((error: Error) => {
  logger.fatal(error.message);
  process.exit(1);
});
