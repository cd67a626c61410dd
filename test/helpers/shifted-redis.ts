import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../tools/free-port.mjs';
import { serverOnPath } from '../../tools/local-redis.mjs';
import { untilServing } from '../../tools/server-info.mjs';
import { Tether } from '../../tools/tether.mjs';

const SOURCE = fileURLToPath(new URL('./shifted-clock.c', import.meta.url));

/** Why no clock can be shifted here, or undefined. */
export function whyNoShiftedClock(): string | undefined {
  if (process.platform !== 'linux') return 'LD_PRELOAD is of Linux';
  if (!serverOnPath()) return 'no redis-server or valkey-server is on the PATH';
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'there is no gcc to compile test/helpers/shifted-clock.c with';
  }
}

/** A local Redis of one test's own, whose wall clock the test moves. It ends with this process. */
export class ShiftedRedis {
  private constructor(
    private readonly tether: Tether,
    private readonly offsetFile: string,
    readonly url: string,
  ) {}

  static async start(): Promise<ShiftedRedis> {
    const tether = await Tether.open();
    try {
      const library = join(tether.directory, 'shifted-clock.so');
      execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl']);
      const port = await freePort();
      const offsetFile = join(tether.directory, 'clock-offset');
      const redis = new ShiftedRedis(tether, offsetFile, `redis://127.0.0.1:${port}`);
      redis.shift(0);
      const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', tether.directory];
      await tether.spawn(serverOnPath()!, flags, {
        env: { ...process.env, LD_PRELOAD: library, CLOCK_OFFSET: offsetFile },
        log: join(tether.directory, 'redis.log'),
        stopSignal: 'SIGKILL',
      });
      await untilServing(port);
      return redis;
    } catch (error) {
      await tether.close();
      throw error;
    }
  }

  /** From now on the server's clock is off by this much. */
  shift(ms: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(ms) * 1_000n);
    // In place: the server has mapped the file.
    writeFileSync(this.offsetFile, bytes, { flag: existsSync(this.offsetFile) ? 'r+' : 'w' });
  }

  stop(): Promise<void> {
    return this.tether.close();
  }
}
