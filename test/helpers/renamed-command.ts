import { Proxy } from './proxy.js';

/** As a server does where `rename-command` gave a command another name; `INFO` and the like are still there for those who start it. */
export async function withoutCommand(url: string, name: string): Promise<Proxy> {
  const proxy = await Proxy.before(url);
  const other = `x${name.slice(1)}`;
  const [own, renamed] = [`$${name.length}\r\n${name}\r\n`, `$${name.length}\r\n${other}\r\n`];
  proxy.judge = (direction, chunk) => {
    const [from, to] = direction === 'request' ? [own, renamed] : [`'${other}'`, `'${name}'`];
    // In place, and of the same length.
    for (let at = chunk.indexOf(from); at >= 0; at = chunk.indexOf(from, at + to.length)) chunk.write(to, at, 'latin1');
    return 'pass';
  };
  return proxy;
}
