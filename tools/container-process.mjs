// One Redis in a container, for as long as this process runs. It is the child of a tether and takes its orders over the
// message channel; when it is told to end, or the tether is gone, the container goes with it.
//
// This stands in for testcontainers' own reaper, whose image would be one more to pull and which machines without a
// registry cannot have. Containers of a process that was itself killed are removed by the next one that starts.
import { hostname } from 'node:os';
import { RedisContainer } from '@testcontainers/redis';
import { getContainerRuntimeClient, ImageName } from 'testcontainers';
import { freePort } from './free-port.mjs';
import { untilServing } from './server-info.mjs';

const OWNER_LABEL = 'nestjs-delay-queue.owner';
const OWNER = `${hostname()}/${process.pid}`;
const ENGINE_TIMEOUT_MS = 10_000;
const START_TIMEOUT_MS = 60_000;
const LOOPBACK_TIMEOUT_MS = 500;
/** Someone else may take a free port before the engine does. */
const PORT_TRIES = 3;

const { image, flags, pullTimeoutMs } = JSON.parse(process.argv[2]);
let engine;
let container;

const orders = { kill, start: () => container.start() };

process.on('message', ({ order, signal }) => {
  orders[order](signal).then(
    () => process.send({ done: true }),
    (error) => process.send({ failed: error.message }),
  );
});
for (const end of ['SIGTERM', 'SIGINT', 'disconnect']) process.once(end, () => void leave());

const starting = begin();
starting.catch((error) => {
  process.send({ failed: error.message, noEngine: !engine });
  return leave();
});

async function begin() {
  engine = await within(ENGINE_TIMEOUT_MS, getContainerRuntimeClient()).catch(() => {
    throw new Error('no Docker engine answers');
  });
  await removeContainers((owner) => isGone(owner));
  await obtainImage();
  const { host, port } = await startContainer();
  process.send({ url: `redis://${host}:${port}`, host, port });
}

async function obtainImage() {
  const name = ImageName.fromString(image);
  if (await engine.image.exists(name)) return;
  console.error(`Pulling ${image} (for ${pullTimeoutMs / 1000} s at most)`);
  await within(pullTimeoutMs, engine.image.pull(name, { force: false, platform: undefined })).catch((error) => {
    throw new Error(`the Docker engine has no image ${image} and could not pull it: ${firstLine(error)}`);
  });
}

async function startContainer() {
  const program = image.includes('valkey') ? 'valkey-server' : 'redis-server';
  for (let tries = 1; ; tries++) {
    // A fixed port: a random one changes when the server is started again, and clients would not find it.
    const port = await freePort();
    try {
      const started = await new RedisContainer(image)
        .withCommand([program, '--protected-mode', 'no', '--save', '', ...flags])
        .withExposedPorts({ container: 6379, host: port })
        .withLabels({ [OWNER_LABEL]: OWNER })
        .withAutoCleanup(false)
        .withStartupTimeout(START_TIMEOUT_MS)
        .start();
      container = engine.container.getById(started.getId());
      return { host: await hostOf(started, port), port };
    } catch (error) {
      if (tries === PORT_TRIES || !/already (allocated|in use)/.test(error.message)) throw error;
    }
  }
}

/** The loopback where the port is published there, as nearly always; testcontainers may name a bridge's address. */
async function hostOf(started, port) {
  const loopback = '127.0.0.1';
  return untilServing(port, { host: loopback, timeoutMs: LOOPBACK_TIMEOUT_MS }).then(
    () => loopback,
    () => started.getHost(),
  );
}

async function kill(signal) {
  const ended = ['SIGSTOP', 'SIGCONT'].includes(signal) ? undefined : container.wait({ condition: 'not-running' });
  await container.kill({ signal });
  await ended;
}

async function leave() {
  // A container that is being made now could not be removed yet.
  await within(START_TIMEOUT_MS, starting).catch(() => {});
  if (engine) await removeContainers((owner) => owner === OWNER);
  process.exit();
}

async function removeContainers(isOurs) {
  const all = await engine.container.dockerode.listContainers({ all: true, filters: { label: [OWNER_LABEL] } });
  const ours = all.filter(({ Labels }) => isOurs(Labels[OWNER_LABEL]));
  await Promise.allSettled(ours.map(({ Id }) => engine.container.getById(Id).remove({ force: true, v: true })));
}

function isGone(owner) {
  const [host, pid] = owner.split('/');
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

function within(ms, promise) {
  const deadline = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms).unref();
  });
  return Promise.race([promise, deadline]);
}

function firstLine(error) {
  return String(error.message ?? error).split('\n')[0];
}
