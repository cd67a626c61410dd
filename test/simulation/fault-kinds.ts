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

/** They came later, and are drawn by streams of their own: a seed without them does what it did. */
export const LATER_KINDS = [
  // The server and what it lets a process do
  'unwelcome',
  'denied',
  'damaged',
] as const;

/** Only in a Cluster, and drawn by a stream of its own. */
export const CLUSTER_KINDS = ['nodeClockSteps'] as const;

/** Only where Sentinels watch the master. */
export const SENTINEL_KINDS = ['masterFails', 'masterChanges', 'sentinelsAway', 'sentinelsLie'] as const;

/**
 * What networks, machines and clocks do all the time. Nobody plans them: they are drawn for each message, and for each moment, as it
 * comes. Weather says when each of them counts.
 */
export const WEATHER_KINDS = [
  'overtaken',
  'requestCut',
  'crossed',
  'replyCut',
  'joined',
  'heartbeatLate',
  'standsStill',
  'clockSlips',
  'scriptsDropped',
  'turnedAway',
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
export type LaterKind = (typeof LATER_KINDS)[number] | (typeof CLUSTER_KINDS)[number] | (typeof SENTINEL_KINDS)[number];
export type WeatherKind = (typeof WEATHER_KINDS)[number];
/** Of a plan. */
export type FaultKind = (typeof FAULT_KINDS)[number] | LaterKind | KindForGood;
export type AnyKind = FaultKind | WeatherKind;

export const ALL_KINDS: readonly AnyKind[] = [
  ...FAULT_KINDS,
  ...LATER_KINDS,
  ...CLUSTER_KINDS,
  ...SENTINEL_KINDS,
  ...KINDS_FOR_GOOD,
  ...WEATHER_KINDS,
];
