// npm run test:simulation -- --help
import { answerHelp } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';
import { buildAll } from './build.mjs';
import { buildOlder } from './older.mjs';

const USAGE = `Usage: npm run test:simulation -- --seed 7 [--print] [--faults 3,7] [--stop] [--slow] [--set '{"workers":1}']   one seed
                        -- --seeds 100 [--from 1] | --hours 3 [--threads 2] [--twice] [--report FILE]    many, in worker threads
                        -- --goal 10000000 --years 100 --each 10000 [--report FILE [--go-on]]            until so many faults, years and faults of each kind
                        -- --older COMMIT --seeds 100                                                    from that build to this one, while jobs flow
                        -- --plan NAME | --plan FILE.json [--print]                                      a kept plan, or one that was left
                        -- --shrink 7 [--keep NAME]                                                      the least that goes wrong
                        -- --plans                                                                      all kept plans`;

answerHelp(USAGE);
await buildAll();
const older = process.argv.indexOf('--older');
if (older > 0) buildOlder(process.argv[older + 1]);
const { command } = await import('../../dist-simulation/cli.js');
process.exitCode = await command(process.argv.slice(2), at());
