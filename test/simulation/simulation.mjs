// npm run test:simulation -- --help
import { refuseArguments } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';
import { readSimulationArguments } from './arguments.mjs';
import { buildAll } from './build.mjs';
import { buildOlder } from './older.mjs';

const USAGE = `Usage: npm run test:simulation -- --seed 7 [--print] [--faults 3,7] [--stop] [--slow] [--set '{"workers":1}']   one seed
                        -- --seeds 100 [--from 1] | --hours 3 [--threads 2] [--twice] [--report FILE]    many, in worker threads
                        -- --goal 10000000 --years 100 --each 10000 [--report FILE [--go-on]]            until so many faults, years and faults of each kind
                        -- --older COMMIT --seeds 100                                                    from that build to this one, while jobs flow
                        -- --plan NAME | --plan FILE.json [--print]                                      a kept plan, or one that was left
                        -- --shrink 7 [--keep NAME]                                                      the least that goes wrong
                        -- --plans                                                                      all kept plans
The first call builds the package, which takes most of a minute. Ends with 0 where no rule was broken, with 1 where one was, and with 2 where an
argument is wrong. Ctrl-C ends many seeds after those that run, and tells what was counted; once more ends them at once.`;

const values = readSimulationArguments(USAGE);
await buildAll();
if (values.older !== undefined) buildOlder(values.older);
const { command } = await import('../../dist-simulation/cli.js');
const { WrongArgument } = await import('../../dist-simulation/wrong-argument.js');
try {
  process.exitCode = await command(values, at());
} catch (error) {
  if (!(error instanceof WrongArgument)) throw error;
  refuseArguments(USAGE, error.message);
}
