import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import type { Command } from 'commander';
import { EXIT } from '../../lib/cli/exit-codes.js';
import { createProgram } from '../../lib/cli/program.js';

const page = readFileSync('docs/command-line.md', 'utf8');
const section = (title: string) => page.split(/^## /m).find((part) => part.startsWith(`${title}\n`))!;
/** The first cell of each row of the tables of a section. */
const cellsOf = (title: string) =>
  [...section(title).matchAll(/^\| (`[^|]*`|\d+) +\|/gm)].map(([, cell]) => cell!.replaceAll('`', ''));

/** Commands with their arguments; of a group its commands. */
function usages(command: Command, before = ''): string[] {
  return command.commands.flatMap((child) => {
    const name = before + child.name();
    if (name.startsWith('__')) return [];
    if (child.commands.length > 0) return usages(child, `${name} `);
    const args = child.registeredArguments.map((argument) => {
      const text = argument.variadic ? `${argument.name()}...` : argument.name();
      return argument.required ? `<${text}>` : `[${text}]`;
    });
    return [[name, ...args].join(' ')];
  });
}

/** Each command that does something, by its words. */
function leavesOf(command: Command, before = ''): [path: string, command: Command][] {
  return command.commands.flatMap((child) => {
    const path = before + child.name();
    if (path.startsWith('__')) return [];
    return child.commands.length > 0 ? leavesOf(child, `${path} `) : [[path, child]];
  });
}

describe('docs/command-line.md', () => {
  it('has each command with its arguments, in the order of the help', () => {
    expect(cellsOf('Commands')).toEqual(usages(createProgram()));
  });

  it('has each exit code', () => {
    expect(
      cellsOf('Exit codes')
        .filter((cell) => /^\d/.test(cell))
        .map(Number),
    ).toEqual(Object.values(EXIT));
  });

  it('says of each command that is about a queue what its exit code 3 means, or that it has none', () => {
    const text = section('Exit codes').split('Which commands answer 3')[1]!;
    const ofAQueue = usages(createProgram()).filter((usage) => /[<[](?:queue|source)[>\]]/.test(usage));
    const withOwn = ofAQueue.filter(
      (usage) => !/^(?:enqueue|limits|reshard|(?:pause|resume)(?:-publishing)?) /.test(usage),
    );
    expect(withOwn.length).toBeGreaterThan(15);
    for (const usage of withOwn) {
      const [, name] = /^([a-z -]+[a-z])/.exec(usage)!;
      expect([usage, text.includes(`\`${name}\``) || text.includes(`\`${name!.replace('schedules ', '')}\``)]).toEqual([
        usage,
        true,
      ]);
    }
  });

  it('has each flag of the server, and its variable in the environment', () => {
    const ofServer = createProgram().options.filter(({ envVar }) => envVar !== undefined);
    expect(ofServer.length).toBeGreaterThan(8);
    const text = section('The server');
    for (const { long, envVar } of ofServer) {
      expect(text).toContain(`${long}`);
      const short = envVar!.replace('DELAY_QUEUE', '');
      expect(text.includes(`\`${envVar}\``) || text.includes(`\`${short}\``)).toBe(true);
    }
  });

  it('names for each command the options that it has, and no others', () => {
    const ofAll = new Set(createProgram().options.map(({ long }) => long));
    for (const [path, command] of leavesOf(createProgram())) {
      const row = section('Commands')
        .split('\n')
        .find((line) => new RegExp(`^\\| \`${path}[ \`]`).test(line));
      const own = [...new Set([...(row ?? '').matchAll(/--[a-z-]+/g)].map(([flag]) => flag))];
      const known = command.options.map(({ long }) => long);
      expect(own.filter((flag) => !known.includes(flag) && !ofAll.has(flag))).toEqual([]);
    }
  });
});
