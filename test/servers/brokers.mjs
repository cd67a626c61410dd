// Brokers from the packages of Debian or Ubuntu: each as children of a tether, on free ports and in a folder of its own, which a restart
// keeps. They come up with the settings that a careful operator gives them: what they have confirmed is on their disk.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/free-port.mjs';
import { onPath } from '../../tools/local-redis.mjs';
import { installPackages } from '../../tools/system-packages.mjs';

const HOST = '127.0.0.1';
/** Erlang takes its time, above all beside others. */
const START_MS = 180_000;

/** By the name of the package; `program` is what it brings, wherever it puts it. */
const BROKERS = {
  'rabbitmq-server': { program: 'rabbitmq-server', prepare: rabbit },
  'nats-server': { program: 'nats-server', prepare: nats },
  mosquitto: { program: 'mosquitto', prepare: mosquitto },
};
/** Packages of programs for administrators lie outside of the PATH of others. */
const ENV = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };

/** Installs what is not there; throws where that cannot be done. */
export async function obtainBrokers() {
  const missing = Object.keys(BROKERS).filter((name) => !onPath([BROKERS[name].program], ENV));
  if (missing.length > 0) await installPackages(missing);
}

export async function startBroker(tether, name) {
  const { program, prepare } = BROKERS[name];
  const directory = join(tether.directory, name);
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const broker = new Broker(
    tether,
    directory,
    port,
    await prepare({ tether, directory, port, program: onPath([program], ENV) }),
  );
  await broker.restart();
  return broker;
}

class Broker {
  #tether;
  #directory;
  #command;
  #process;

  constructor(tether, directory, port, command) {
    this.#tether = tether;
    this.#directory = directory;
    this.#command = command;
    this.port = port;
  }

  async kill(signal = 'SIGKILL') {
    this.#process.kill(signal);
    await this.#process.exited;
  }

  /** Ends it by SIGKILL if it still runs, and starts it again on the same port, over the same folder. */
  async restart() {
    if (this.#process && !this.#process.exit) await this.kill();
    const { program, args, env = ENV, greeting } = this.#command;
    const log = join(this.#directory, 'log');
    this.#process = await this.#tether.spawn(program, args, { cwd: this.#directory, env, log, stopSignal: 'SIGKILL' });
    for (const until = Date.now() + START_MS; !(await answers(this.port, greeting)); await sleep(100)) {
      if (!this.#process.exit && Date.now() < until) continue;
      const said = readFileSync(log, 'utf8').trim().split('\n').slice(-10).join('\n');
      throw new Error(`${program} did not start; it said:\n${said}`);
    }
  }
}

/** A listener may be there before those behind it are: only an answer is one. */
function answers(port, greeting) {
  return new Promise((resolve) => {
    const socket = createConnection(port, HOST);
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.on('error', () => end(false)).on('close', () => end(false));
    socket.once('data', () => end(true));
    if (greeting) socket.once('connect', () => socket.write(greeting));
  });
}

/**
 * The Erlang machine itself, not the script around it: a SIGKILL must reach the broker. Its name server would make itself a daemon that
 * nobody ends, so one is started before it.
 */
async function rabbit({ tether, directory, port }) {
  const [names, distribution] = [await freePort(), await freePort()];
  const at = (name) => join(directory, name);
  writeFileSync(at('plugins'), '[].\n');
  await tether.spawn('epmd', ['-address', HOST, '-port', String(names)], {
    env: ENV,
    log: at('epmd.log'),
    stopSignal: 'SIGKILL',
  });
  const env = {
    ...ENV,
    HOME: directory,
    ERL_EPMD_PORT: String(names),
    ERL_EPMD_ADDRESS: HOST,
    RABBITMQ_ALLOW_INPUT: '1', // which lets the script become the machine
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-noinput +S 1:1 +sbwt none',
    RABBITMQ_NODENAME: `relay${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: HOST,
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: at('mnesia'),
    RABBITMQ_LOG_BASE: at('logs'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_PID_FILE: at('pid'),
    RABBITMQ_ENABLED_PLUGINS_FILE: at('plugins'),
    RABBITMQ_CONFIG_FILE: at('none'),
    RABBITMQ_CONF_ENV_FILE: at('none'),
  };
  // Debian puts a script in front of it that changes the user and the folder.
  const program = '/usr/lib/rabbitmq/bin/rabbitmq-server';
  return { program, args: [], env, greeting: Buffer.from('AMQP\0\0\x09\x01', 'latin1') };
}

/** It greets by itself. */
async function nats({ program, port }) {
  return { program, args: ['-a', HOST, '-p', String(port)] };
}

/** Each change of what it keeps is written at once, which by default happens every half hour. */
async function mosquitto({ program, directory, port }) {
  const config = join(directory, 'mosquitto.conf');
  const user = process.getuid?.() === 0 ? ['user root'] : [];
  const lines = [
    `listener ${port} ${HOST}`,
    'allow_anonymous true',
    ...user,
    'persistence true',
    `persistence_location ${directory}/`,
    'autosave_on_changes true',
    'autosave_interval 1',
    'max_queued_messages 0',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  // CONNECT of MQTT 3.1.1, with a clean session and the name "up".
  const connect = [0x10, 0x0e, 0x00, 0x04, 0x4d, 0x51, 0x54, 0x54, 0x04, 0x02, 0x00, 0x0a, 0x00, 0x02, 0x75, 0x70];
  return { program, args: ['-c', config], greeting: Buffer.from(connect) };
}
