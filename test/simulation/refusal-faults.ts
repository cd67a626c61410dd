import type { Inject } from './injection.js';
import { errorReply } from './resp.js';

/** What a server says to a user that it does not know, or does not permit what it asks, and to which commands. */
const REFUSALS: readonly (readonly [commands: RegExp, answer: string])[] = [
  [/./, 'NOAUTH Authentication required.'],
  [/./, 'WRONGPASS invalid username-password pair or user is disabled.'],
  [/^SUBSCRIBE$/, 'NOPERM this user has no permissions to access one of the channels used as arguments'],
  [/^PUBLISH$/, 'NOPERM this user has no permissions to access one of the channels used as arguments'],
  [/^EVAL/, "NOPERM this user has no permissions to run the 'evalsha' command"],
  [/^INFO$/, "ERR unknown command 'INFO', with args beginning with: "],
  [/^SUBSCRIBE$/, "ERR unknown command 'SUBSCRIBE', with args beginning with: "],
  [/^EVALSHA$/, "ERR unknown command 'EVALSHA', with args beginning with: "],
  [/^SELECT$/, 'ERR DB index is out of range'],
  [/^(?:EVAL|INFO)/, 'ERR Unknown Redis command called from script script: 0'],
];

export const REFUSAL_INJECTIONS: Readonly<Record<'unwelcome' | 'denied', Inject>> = {
  // Somebody changes users on the server, and changes them back.
  unwelcome({ simulation, fault, member, connections, took, troubles }) {
    const ms = 500 + 6_000 * fault.a;
    const { engine } = simulation;
    const [commands, answer] = REFUSALS[Math.floor(fault.b * REFUSALS.length)]!;
    const { name } = member.process;
    const until = engine.now + ms;
    const refuse = (command: string) => {
      if (engine.now >= until || !commands.test(command)) return undefined;
      took();
      return errorReply(answer);
    };
    for (const node of simulation.nodes) node.unwelcome.set(name, refuse);
    for (const connection of connections) connection.reset(true);
    troubles(ms);
  },
  // Protected mode: it says so, and closes the connection.
  denied({ simulation, fault, member, connections, took, troubles }) {
    const ms = 300 + 4_000 * fault.a;
    for (const connection of connections) connection.reset(true);
    simulation.network.tooMany.set(member.process.name, { until: simulation.engine.now + ms, took, answer: DENIED });
    troubles(ms);
  },
};

const DENIED = 'DENIED Redis is running in protected mode because protected mode is enabled and no password is set';
