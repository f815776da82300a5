import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A private certificate authority, and certificates that it has signed, in a folder of their own. */
export class TestAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-ca-'));
  readonly ca = join(this.folder, 'ca.pem');

  constructor() {
    this.#openssl(
      'req',
      '-x509',
      ...NEW_KEY,
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-days',
      '2',
      '-subj',
      '/CN=Sluice test authority',
    );
  }

  /** The certificate of the authority in PEM. */
  get text(): string {
    return readFileSync(this.ca, 'utf8');
  }

  /** Paths of a certificate for names and addresses, and of its key. */
  issue(name: string, ...hosts: readonly string[]): { cert: string; key: string } {
    const names = hosts.map((host) => (/^[\d.]+$|:/.test(host) ? `IP:${host}` : `DNS:${host}`)).join();
    writeFileSync(join(this.folder, `${name}.ext`), `subjectAltName=${names}\n`);
    this.#openssl('req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    const signer = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', `${name}.ext`];
    this.#openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.pem`, '-days', '1', ...signer);
    return { cert: join(this.folder, `${name}.pem`), key: join(this.folder, `${name}.key`) };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  #openssl(...args: readonly string[]): void {
    try {
      execFileSync('openssl', args, { cwd: this.folder, stdio: 'pipe' });
    } catch (error) {
      throw new Error('these tests make certificates with the program openssl; install it', { cause: error });
    }
  }
}

/** Elliptic curves, because RSA keys take a second each. */
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
