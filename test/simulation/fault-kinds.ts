/** All that can go wrong, and where. */
export const FAULT_KINDS = [
  // A process
  'crash',
  'aimedCrash',
  'terminate',
  'freeze',
  'aimedFreeze',
  'wallClockJump',
  // Its connections
  'reset',
  'killedOne',
  'refused',
  'lostReply',
  'requestHeld',
  'replyHeld',
  'lateStep',
  'aimedLateStep',
  'halfOpen',
  'halfOpenOne',
  'cutOff',
  'slow',
  'inPieces',
  'deaf',
  'messagesLost',
  // The server
  'serverPause',
  'restart',
  'failover',
  'splitBrain',
  'replicasLag',
  'full',
  'readOnly',
  'busy',
  'diskFull',
  'tooManyClients',
  'scriptsForgotten',
  'serverClockJump',
  'serverClockJumpsTwice',
  // A Cluster
  'slotMoves',
  'nodeFails',
] as const;

/** What never heals. Each concerns one worker, and at least one worker is spared: the others must go on as if it were not there. */
export const KINDS_FOR_GOOD = [
  'goneForGood',
  'frozenForGood',
  'cutOffForGood',
  'halfOpenForGood',
  'readOnlyForGood',
  'slowForGood',
] as const;

export type KindForGood = (typeof KINDS_FOR_GOOD)[number];
export type FaultKind = (typeof FAULT_KINDS)[number] | KindForGood;

export const ALL_KINDS: readonly FaultKind[] = [...FAULT_KINDS, ...KINDS_FOR_GOOD];
