import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';

const FOLDER = 'sample-app/compose';

interface Service {
  readonly image?: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
}
type Services = Readonly<Record<'redis' | 'sample' | 'prometheus' | 'grafana', Service>>;

const read = <T>(file: string): T => parse(readFileSync(join(FOLDER, file), 'utf8')) as T;
const { services, volumes } = read<{ services: Services; volumes: Record<string, null> }>('compose.yml');
const mounts = Object.values(services).flatMap((service) =>
  (service.volumes ?? []).map((text) => text.split(':') as [from: string, to: string]),
);
/** The file of this repository that a container finds under that path. */
const mountedAt = (path: string) => mounts.find(([, to]) => to === path)?.[0];

// What a machine without Docker can hold.
describe('the compose file of the sample', () => {
  it('mounts files that exist, and volumes that it declares', () => {
    const files = mounts.map(([from]) => from).filter((from) => from.startsWith('.'));
    const named = mounts.map(([from]) => from).filter((from) => !from.startsWith('.'));
    expect(files.filter((file) => !existsSync(join(FOLDER, file)))).toEqual([]);
    expect(named).toEqual(Object.keys(volumes));
    expect(files).toHaveLength(5);
  });

  it('starts after services that it has, and gives no port to other machines', () => {
    const all = Object.values(services);
    const needed = all.flatMap(({ depends_on: needs = [] }) => (Array.isArray(needs) ? needs : Object.keys(needs)));
    const ports = all.flatMap((service) => service.ports ?? []);
    expect(needed.filter((name) => !(name in services))).toEqual([]);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    expect(new Set(ports.map((port) => port.split(':')[1])).size).toBe(ports.length);
  });

  it('connects the sample with its Redis, on the port that the sample listens on', () => {
    const { environment = {}, ports, build } = services.sample;
    expect(new URL(environment['REDIS_URL']!).hostname in services).toBe(true);
    expect(ports).toEqual([`127.0.0.1:3000:${environment['PORT']}`]);
    expect(existsSync(join(FOLDER, build!.context, build!.dockerfile))).toBe(true);
    expect(join(FOLDER, build!.context)).toMatch(/^\.[\\/]?$/);
  });

  it('builds what its image starts', () => {
    const text = readFileSync(join(FOLDER, 'Dockerfile'), 'utf8');
    const started = /dist-[\w-]+\/[\w-]+\.js/.exec(text)![0];
    const [, names, module] = /import \{ ([^}]+) \} from '\.\/([^']+)'/.exec(text)!;
    const source = readFileSync(module!, 'utf8');
    for (const name of names!.split(', '))
      expect(source).toMatch(new RegExp(`export (?:const|async function) ${name}\\b`));
    expect(source).toContain(`lastFile: '${started}'`);
  });

  it('lets Prometheus ask the sample for its metrics, with the alert rules of the docs', () => {
    const { scrape_configs: scraped, rule_files: rules } = read<{
      scrape_configs: { metrics_path: string; static_configs: { targets: string[] }[] }[];
      rule_files: string[];
    }>('prometheus.yml');
    const targets = scraped.flatMap((one) => one.static_configs.flatMap((config) => config.targets));
    const controller = readFileSync('sample-app/src/metrics/metrics.controller.ts', 'utf8');
    expect(targets).toEqual([`sample:${services.sample.environment!['PORT']}`]);
    expect(controller).toContain(`@Controller('${scraped[0]!.metrics_path.slice(1)}')`);
    expect(rules.map(mountedAt)).toEqual(['../../docs/observability/alerts.yml']);
  });

  it('lets Grafana ask that Prometheus, and show the dashboard of the docs', () => {
    const { datasources } = read<{ datasources: { type: string; url: string }[] }>('grafana-datasource.yml');
    const { providers } = read<{ providers: { options: { path: string } }[] }>('grafana-dashboards.yml');
    const { hostname, port } = new URL(datasources[0]!.url);
    const home = services.grafana.environment!['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH']!;
    expect([hostname in services, services.prometheus.ports]).toEqual([true, [`127.0.0.1:9090:${port}`]]);
    expect(mountedAt(home)).toBe('../../docs/observability/dashboard.json');
    expect(dirname(home)).toBe(providers[0]!.options.path);
    expect(readFileSync(join(FOLDER, mountedAt(home)!), 'utf8')).toContain(`"query": "${datasources[0]!.type}"`);
  });
});
