// What a server that speaks TLS on this machine needs: a certificate for localhost, which is its own authority and lasts two days.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param {string} folder is made
 * @returns {{ key: string, certificate: string } | undefined} files; undefined without openssl on this machine
 */
export function makeCertificate(folder) {
  mkdirSync(folder);
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const files = ['-keyout', key, '-out', certificate];
  try {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...names], {
      stdio: 'ignore',
    });
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  return { key, certificate };
}

/** Options of redis-server: TLS on a port of its own, for clients without a certificate. */
export function tlsFlags(port, { key, certificate }) {
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate];
  return ['--tls-port', String(port), ...files, '--tls-auth-clients', 'no'];
}
