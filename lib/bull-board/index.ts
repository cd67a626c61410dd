export { delayQueueBoardAdapter } from './bull-board-adapter.js';
export type { BoardServices } from './bull-board-adapter.js';
