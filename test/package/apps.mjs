// The applications that install the tarball: exact versions, so that a run differs from the last one only by ours.

const nest12 = {
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/microservices': '12.1.1',
  '@nestjs/platform-express': '12.5.1',
  '@nestjs/platform-fastify': '12.5.0',
  '@nestjs/terminus': '12.1.0',
  '@nestjs/testing': '12.1.1',
};

const nest11 = {
  '@nestjs/common': '11.2.10',
  '@nestjs/core': '11.2.10',
  '@nestjs/microservices': '11.2.6',
  '@nestjs/platform-express': '11.2.10',
  '@nestjs/platform-fastify': '11.2.8',
  '@nestjs/terminus': '11.1.1',
  '@nestjs/testing': '11.2.6',
};

/** Peers of what one may import besides the module itself. */
const OPTIONAL = { '@opentelemetry/api': '1.9.1', 'prom-client': '15.1.3' };

export const APPS = [
  { name: 'nest-12-esm', type: 'module', nest: nest12, ioredis: '6.0.0', typescript: '6.0.3' },
  { name: 'nest-12-cjs', type: 'commonjs', nest: nest12, ioredis: '6.0.0', typescript: '6.0.3' },
  { name: 'nest-11-cjs', type: 'commonjs', nest: nest11, ioredis: '5.11.1', typescript: '5.9.3' },
];

export function manifestOf({ name, type, nest, ioredis, typescript }, tarball) {
  return {
    name,
    private: true,
    type,
    dependencies: {
      ...nest,
      ...OPTIONAL,
      ioredis,
      'nestjs-delay-queue': `file:${tarball}`,
      'reflect-metadata': '0.2.2',
      rxjs: '7.8.2',
    },
    devDependencies: { typescript, '@types/node': '^20.19.0' },
  };
}

/** The newest one needs Node 22. */
const VITEST = Number(process.versions.node.split('.')[0]) >= 22 ? '5.1.1' : '4.1.12';

/** Tests of vitest in a project that has none of the optional peers. */
export function manifestOfVitest(tarball) {
  const { '@nestjs/common': common, '@nestjs/core': core, '@nestjs/testing': testing } = nest12;
  return {
    name: 'vitest-project',
    private: true,
    type: 'module',
    dependencies: {
      '@nestjs/common': common,
      '@nestjs/core': core,
      '@nestjs/testing': testing,
      ioredis: '6.0.0',
      'nestjs-delay-queue': `file:${tarball}`,
      'reflect-metadata': '0.2.2',
      rxjs: '7.8.2',
    },
    devDependencies: { typescript: '6.0.3', '@types/node': '^20.19.0', vitest: VITEST },
  };
}

/** Built by all that `nest build` knows, whose packages are its optional peers. */
export function manifestOfBuilders(tarball) {
  const { '@nestjs/common': common, '@nestjs/core': core } = nest12;
  return {
    name: 'built',
    private: true,
    type: 'module',
    dependencies: {
      '@nestjs/common': common,
      '@nestjs/core': core,
      ioredis: '6.0.0',
      'nestjs-delay-queue': `file:${tarball}`,
      'reflect-metadata': '0.2.2',
      rxjs: '7.8.2',
    },
    devDependencies: {
      '@nestjs/cli': '12.0.8',
      '@swc/cli': '0.8.1',
      '@swc/core': '1.16.22',
      '@types/node': '^20.19.0',
      'fork-ts-checker-webpack-plugin': '9.1.0',
      'ts-loader': '^9.5.0',
      'tsconfig-paths-webpack-plugin': '4.2.0',
      typescript: '6.0.3',
      webpack: '5.111.1',
      'webpack-node-externals': '3.0.0',
    },
  };
}
