import { isIP } from 'node:net';
import type { Command } from 'commander';
import { randomBytes } from '../../time-and-randomness.js';
import { action } from '../cli.js';
import { EXIT, usage } from '../exit-codes.js';
import { Logger } from '../terminal/nest-common.js';
import type { DashboardSettings } from './dashboard-server.js';

interface Flags {
  port: string;
  host: string;
  allowHost?: string;
  readOnly?: boolean;
  /** Of `--no-token`. */
  token: boolean;
  hidePayloads?: boolean;
}

const TOKEN_VARIABLE = 'DELAY_QUEUE_DASHBOARD_TOKEN';
/** Of what a cookie can hold, and nobody guesses. */
const TOKEN = /^[\w.~-]{16,256}$/;
const TOKEN_BYTES = 24;
const LOOPBACK = /^(?:127(?:\.\d+){3}|::1|localhost)$/;

export function addDashboard(program: Command): void {
  program
    .command('dashboard')
    .description('a page that shows the queues and mends them, on this machine until Ctrl C')
    .option('--port <n>', '0 for any that is free', '3000')
    .option('--host <address>', 'where it listens', '127.0.0.1')
    .option('--allow-host <names>', 'names by which browsers may ask it, besides addresses: jobs.example,...')
    .option('--read-only', 'nobody changes anything')
    .option('--no-token', 'whoever reaches it comes in; only on this machine, and with --read-only')
    .option('--hide-payloads', 'nor the context of jobs and the texts of errors')
    .addHelpText('after', `\nThe token is a new one each time, or that in ${TOKEN_VARIABLE}.`)
    .action(
      action(async (cli, flags: Flags) => {
        const settings = settingsOf(flags);
        const session = await cli.connect();
        const { DashboardServer } = await import('./dashboard-server.js');
        const server = new DashboardServer(session, settings);
        const ended = cli.interruption.asked();
        const address = await server.listen();
        Logger.reports = true;
        // One of the environment is known, and is to stay out of logs.
        const isPrinted = settings.token !== undefined && process.env[TOKEN_VARIABLE] === undefined;
        const url = isPrinted ? `${address}?token=${settings.token}` : address;
        if (cli.out.isJson) cli.out.json({ url });
        else cli.out.line(url);
        if (!LOOPBACK.test(settings.host)) cli.out.note('It is without encryption: put a proxy with HTTPS before it.');
        cli.out.note('Ctrl C ends it.');
        await ended;
        await server.close();
        return EXIT.done;
      }),
    );
}

/** @throws CommandError */
function settingsOf({
  port,
  host,
  allowHost,
  readOnly = false,
  token,
  hidePayloads = false,
}: Flags): DashboardSettings {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw usage(`--port: "${port}" is no port.`);
  if (!token && !readOnly) throw usage('--no-token: whoever comes could purge queues. Give --read-only as well.');
  if (!token && !LOOPBACK.test(host)) throw usage('--no-token: only on this machine, without --host.');
  const names = (allowHost ?? '').split(',').map((name) => name.trim().toLowerCase());
  return {
    host,
    port: Number(port),
    names: new Set([...names.filter((name) => name !== ''), ...(isIP(host) === 0 ? [host.toLowerCase()] : [])]),
    token: token ? ownToken() : undefined,
    level: readOnly ? 'read' : 'write',
    hides: hidePayloads,
  };
}

function ownToken(): string {
  const given = process.env[TOKEN_VARIABLE];
  if (given === undefined) return randomBytes(TOKEN_BYTES).toString('base64url');
  if (TOKEN.test(given)) return given;
  throw usage(`${TOKEN_VARIABLE}: give 16 to 256 letters, digits and . _ ~ -`);
}
