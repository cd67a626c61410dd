import { createServer } from 'node:net';

/** A port of the loopback interface that is free now; whoever takes it must still be ready to find it taken. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
