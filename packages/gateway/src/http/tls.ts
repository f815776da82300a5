/** HTTPS for the listener: the certificate, which is read again when its files change, and connections before their handshake. */

import { constants, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { systemCode } from '@sluice/lab/text';
import { readStamp } from '../files/stamp.ts';
import type { Clock, Timer } from './clock.ts';

/** Paths of a certificate with its chain and of its private key, both in PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** A certificate and its key that belong together. */
export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When the certificate expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** A certificate or key that cannot be used. The message names the file and never quotes it. */
export class TlsError extends Error {
  readonly setting: keyof TlsFiles;

  constructor(setting: keyof TlsFiles, message: string) {
    super(message);
    this.setting = setting;
  }
}

/** Reads a certificate and its key. Rejects with a `TlsError`. */
export async function readTlsPair(files: TlsFiles): Promise<TlsPair> {
  const cert = await readPem(files, 'cert');
  const key = await readPem(files, 'key');
  const certificate = parseCertificate(cert);
  if (!certificate || !isUsable({ cert })) throw new TlsError('cert', `${files.cert} is not a certificate in PEM`);
  if (!isUsable({ key })) throw new TlsError('key', `${files.key} is not a private key in PEM without a passphrase`);
  if (!isUsable({ cert, key }))
    throw new TlsError('key', `${files.key} is not the private key of the certificate in ${files.cert}`);
  return { cert, key, expires: Date.parse(certificate.validTo) };
}

/** A chain has some kilobytes. */
const MAX_PEM_BYTES = 1024 * 1024;

async function readPem(files: TlsFiles, setting: keyof TlsFiles): Promise<Buffer> {
  const file = files[setting];
  try {
    const stats = await stat(file);
    if (stats.isFile() && stats.size <= MAX_PEM_BYTES) return await readFile(file);
  } catch (error) {
    throw new TlsError(setting, `${file} cannot be read (${systemCode(error) ?? 'unknown error'})`);
  }
  throw new TlsError(setting, `${file} must be a file of at most 1 MiB`);
}

function parseCertificate(pem: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function isUsable(pair: Partial<Pick<TlsPair, 'cert' | 'key'>>): boolean {
  try {
    createSecureContext(pair);
    return true;
  } catch {
    return false;
  }
}

/** Reads a pair again when its files change. A pair that cannot be used is reported, and the one before stays in use. */
export class CertificateWatch {
  readonly #options: CertificateWatchOptions;
  readonly #timer: Timer;
  /** The state of the files that was read last. */
  #read: string;
  /** The state of the files at the last poll. */
  #seen: string;
  #running: Promise<void> = Promise.resolve();

  private constructor(options: CertificateWatchOptions, stamp: string) {
    this.#options = options;
    this.#read = stamp;
    this.#seen = stamp;
    this.#timer = options.clock.setRepeating(() => void this.poll(), options.pollMs ?? POLL_MS).unref();
  }

  /** Begins to watch files that were just read. */
  static async start(options: CertificateWatchOptions): Promise<CertificateWatch> {
    return new CertificateWatch(options, await readStamps(options.files));
  }

  /** Reads files that have changed and were the same at the last two polls: both are replaced one after the other. */
  async poll(): Promise<void> {
    const stamp = await readStamps(this.#options.files);
    const isStable = stamp === this.#seen;
    this.#seen = stamp;
    if (isStable && stamp !== this.#read) await this.reload();
  }

  /** Reads the files now. Never rejects. */
  reload(): Promise<void> {
    this.#running = this.#running.then(() => this.#load());
    return this.#running;
  }

  /** Stops watching. */
  close(): void {
    this.#timer.close();
  }

  async #load(): Promise<void> {
    const { files, onPair, onRefused } = this.#options;
    this.#read = await readStamps(files);
    try {
      onPair(await readTlsPair(files));
    } catch (error) {
      onRefused(error instanceof Error ? error.message : String(error));
    }
  }
}

/** What is watched, and who is told. */
export interface CertificateWatchOptions {
  readonly files: TlsFiles;
  readonly clock: Clock;
  readonly onPair: (pair: TlsPair) => void;
  readonly onRefused: (reason: string) => void;
  readonly pollMs?: number | undefined;
}

const POLL_MS = 2000;

const readStamps = async ({ cert, key }: TlsFiles): Promise<string> =>
  (await Promise.all([readStamp(cert), readStamp(key)])).join();

/** TLS 1.2 and newer, one handshake for each connection. */
const CONTEXT_OPTIONS = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const;

/** HTTP/1.1 alone. */
const TLS_OPTIONS = { ...CONTEXT_OPTIONS, ALPNProtocols: ['http/1.1'] };

/** An HTTPS server that behaves as a plain one does: half-open connections, and an end of idle handshakes. */
export class TlsServer {
  readonly server: Server;
  /** Connections without a finished handshake, by address and port of the peer. The HTTP server does not know them yet. */
  readonly #handshakes = new Map<string, Socket>();

  constructor(options: ServerOptions, { cert, key }: TlsPair, { handshakeMs, onFailed }: TlsServerOptions) {
    this.server = createServer({ ...options, ...TLS_OPTIONS, cert, key, allowHalfOpen: true, handshakeTimeout: handshakeMs });
    this.server.prependListener('connection', (socket: Socket) => {
      const peer = namePeer(socket);
      this.#handshakes.set(peer, socket);
      socket.once('close', () => this.#handshakes.delete(peer));
    });
    this.server.prependListener('secureConnection', (socket: TLSSocket) => this.#handshakes.delete(namePeer(socket)));
    // Node would pass the failure on as an unreadable request, and respond in plain text to a TLS client.
    this.server.removeAllListeners('tlsClientError');
    this.server.on('tlsClientError', (error, socket) => {
      const plain = this.#handshakes.get(namePeer(socket));
      socket.destroy();
      onFailed(error, plain?.writable ? plain : undefined);
    });
  }

  /** Uses another certificate for new connections. */
  use({ cert, key }: TlsPair): void {
    this.server.setSecureContext({ ...CONTEXT_OPTIONS, cert, key });
  }

  /** Closes connections that have not finished their handshake. */
  closeHandshakes(): void {
    for (const socket of this.#handshakes.values()) socket.destroy();
  }
}

interface TlsServerOptions {
  /** How long a handshake may take. */
  readonly handshakeMs: number;
  /** A handshake failed. A client that has sent plain HTTP can be sent a response on the connection below; it must be closed. */
  readonly onFailed: (error: Error, plain: Socket | undefined) => void;
}

const namePeer = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
