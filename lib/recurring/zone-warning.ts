import type { InstanceContext } from '../instance/instance-context.js';
import type { OptionNaming } from '../job/option-rules.js';
import { shown } from '../job/duration.js';

const warned = new WeakSet<InstanceContext>();

/**
 * A cron expression goes by UTC unless it names a zone, and those of other libraries go by the zone of the process. Where the two
 * differ, this is said of the first expression without a zone, once for each instance.
 */
export function warnOfZone(cron: string, context: InstanceContext, naming: OptionNaming): void {
  if (warned.has(context) || !isElsewhere()) return;
  warned.add(context);
  context.logger.warn(
    `${naming('timeZone')}: none is given, so cron ${shown(cron)} goes by UTC, and not by ${zoneOfProcess()}, the zone of this process. ` +
      "Give `timeZone`; 'UTC' says that it is meant, and this is not said. Said once.",
  );
}

/** In winter or in summer the clocks of this process show another time than UTC. */
function isElsewhere(): boolean {
  return [0, 6].some((month) => new Date(2026, month, 1).getTimezoneOffset() !== 0);
}

function zoneOfProcess(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
