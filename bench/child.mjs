// The program of every child process: runs one module and reports its result. See processes.mjs.
const [module, args] = process.argv.slice(2);
process.on('disconnect', () => process.exit(1));

const send = (message, sent = () => {}) => process.connected && process.send(message, sent);
const channel = {
  ready: () => send({ ready: true }),
  note: (note) => send({ note }),
  asked: new Promise((resolve) => process.once('message', resolve)),
};

let message;
try {
  const { default: main } = await import(new URL(module, import.meta.url).href);
  message = { result: await main(JSON.parse(args), channel) };
} catch (error) {
  message = { error: error.stack };
}
// Whatever a library left open must not keep the process: only now, and with the result on its way, does it end.
send(message, () => process.exit(0));
