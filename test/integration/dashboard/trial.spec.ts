import { expect, it } from '@jest/globals';
import { DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { serveDashboard } from '../../helpers/dashboard.js';
import type { AdapterName } from '../../helpers/dashboard.js';

it.each(['Express', 'Fastify'] as AdapterName[])('trial %s', async (adapter) => {
  const log: string[] = [];
  const d = await serveDashboard({ adapter, imports: [DelayQueueTestingModule.forTest()], log });
  await d.producer.enqueue('mail', { a: 1 }, { id: 'A', delay: '1h' });
  for (const path of ['', '/', '?x', '/?x', '/assets/index-1a2b.js', '/api/me', '/api/state', '/api/timeline', '/api/timeline?queue=mail', '/api/jobs?queue=mail&state=delayed', '/api/job?queue=mail&id=A', '/api/job?queue=mail&id=B', '/api/dead-groups?queue=mail', '/api/lateness?queue=mail', '/api/processes', '/api/server', '/api/nothing', '/a/b/c/d', '/' + 'x'.repeat(200), '/../etc', '/%00', '/%zz', '//api/me']) {
    const a = await d.ask(path);
    console.log(adapter, path, a.status, a.headers['content-type'], a.text.slice(0, 100));
  }
  for (const [name, body] of Object.entries({ 'jobs/run-now': { queue: 'mail', ids: ['A'], dryRun: true }, 'jobs/reschedule': { queue: 'mail', range: { from: 0 }, to: { by: '1h' } }, 'jobs/cancel': { queue: 'mail', ids: ['A', 'B'] }, 'queue/pause': { queue: 'mail' }, 'queue/purge': { queue: 'mail', confirm: 'mail' }, 'dead/requeue': { queue: 'mail', all: true }, 'dead/remove': { queue: 'mail', ids: ['x'], dryRun: true } })) {
    const a = await d.act(name, body);
    console.log(adapter, name, a.status, a.text.slice(0, 500));
  }
  console.log(log.join('\n'));
  await d.app.close();
});
