import { afterEach } from '@jest/globals';
import type { ModuleMetadata } from '@nestjs/common';
import type { DelayQueueDashboardRootOptions } from '../../lib/dashboard/index.js';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../lib/testing/index.js';
import { serveDashboard } from '../helpers/dashboard.js';
import type { Dashboard } from '../helpers/dashboard.js';

export interface Desk extends Dashboard {
  readonly home: string;
  readonly harness: DelayQueueHarness;
}

export interface DeskSettings {
  /** Of the dashboard. */
  readonly options?: Partial<DelayQueueDashboardRootOptions>;
  /** Of `forRoot()`. */
  readonly root?: Omit<DelayQueueRootOptions, 'connection'>;
  readonly providers?: ModuleMetadata['providers'];
  readonly imports?: ModuleMetadata['imports'];
}

/** The built page, as `npm run build` leaves it. */
export const PAGE = 'dist/dashboard';

const open: { app: Dashboard['app'] }[] = [];

/** An application over HTTP, on a store in memory whose time stands still, with the dashboard at `/admin/jobs`. */
export async function openDesk({ options, root, providers = [], imports = [] }: DeskSettings = {}): Promise<Desk> {
  const desk = await serveDashboard({
    imports: [...imports, DelayQueueTestingModule.forTest(root)],
    providers,
    path: 'admin/jobs',
    options: { access: 'unprotected', assets: PAGE, path: 'admin/jobs', ...options },
  });
  closeLater(desk);
  const harness = DelayQueueHarness.of(desk.app);
  return Object.assign(desk, { home: `http://127.0.0.1:${desk.port}/admin/jobs/`, harness });
}

/** An application that closes after the story. */
export function closeLater(dashboard: { app: Dashboard['app'] }): void {
  open.push(dashboard);
}

/** To be called after `inABrowser()`, as hooks run in their order: an application closes when nobody looks at it any more. */
export function closeDesks(): void {
  afterEach(async () => {
    await Promise.all(open.splice(0).map(({ app }) => app.close()));
  });
}
