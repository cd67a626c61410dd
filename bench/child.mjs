// The program of every child process: runs one module and reports its result. See processes.mjs.
const [module, args] = process.argv.slice(2);
process.on('disconnect', () => process.exit(1));

const channel = {
  ready: (what = true) => process.send({ ready: what }),
  note: (note) => process.send({ note }),
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
process.send(message, () => process.exit(0));
