import { DelayQueueModule } from '../../lib/index.js';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { serveDashboard } from './dashboard.js';
import type { Dashboard, DashboardSettings } from './dashboard.js';
import { endingWithEachTest } from './ending.js';
import type { InAWorld } from './in-a-world.js';

/** Dashboards on the world's Redis, which are closed after each test. */
export function dashboardsIn(here: InAWorld) {
  const end = endingWithEachTest();
  const forRoot = (options: DelayQueueRootOptions = {}) =>
    DelayQueueModule.forRoot({
      connection: here.world.connection,
      prefix: here.world.prefix,
      shutdownHooksWarning: false,
      consume: false,
      ...options,
    });
  const serve = async ({
    root,
    imports = [],
    ...settings
  }: Partial<DashboardSettings> & { root?: DelayQueueRootOptions } = {}): Promise<Dashboard> => {
    const dashboard = await serveDashboard({ imports: [...imports, forRoot(root)], ...settings });
    end(dashboard.app);
    return dashboard;
  };
  return { serve, forRoot };
}
