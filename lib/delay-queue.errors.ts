// Every error that the library throws on purpose, by what fails. docs/errors.md says of each what to do.
export * from './errors/delay-queue.error.js';
export * from './errors/input.errors.js';
export * from './errors/call.errors.js';
export * from './errors/run.errors.js';
export * from './errors/server.errors.js';
