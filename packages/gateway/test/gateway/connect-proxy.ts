import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/** What a proxy does with a request for a tunnel: opens it, responds with these bytes instead, or says nothing. */
type Behaviour = 'open' | 'silent' | { readonly send: string };

/** A real proxy for tunnels (CONNECT). It knows names that no resolver knows, and keeps every byte that it could read. */
export class ConnectProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Ports on this machine by `host:port`; others are taken as they are. */
  readonly routes = new Map<string, number>();
  behaviour: Behaviour = 'open';
  /** Heads of the requests for tunnels. */
  heads: string[] = [];
  /** Everything that went through, in both directions. */
  seen = '';

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(files?: { cert: string; key: string }): Promise<ConnectProxy> {
    const server = files ? createTlsServer(readFiles(files)) : createServer();
    const proxy = new ConnectProxy(server);
    server.on(files ? 'secureConnection' : 'connection', (socket: Socket) => proxy.#serve(socket));
    await listen(server);
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Tunnels that are open. */
  get openSockets(): number {
    return this.#sockets.size;
  }

  play(behaviour: Behaviour): void {
    this.behaviour = behaviour;
    this.heads = [];
    this.seen = '';
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#track(socket);
    let head = '';
    const read = (piece: Buffer): void => {
      head += piece.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      this.heads.push(head);
      this.#respond(socket, head);
    };
    socket.on('data', read);
  }

  #respond(socket: Socket, head: string): void {
    if (this.behaviour === 'silent') return;
    if (this.behaviour !== 'open') {
      socket.end(this.behaviour.send);
      return;
    }
    const target = /^CONNECT (\S+) /.exec(head)?.[1] ?? '';
    const port = this.routes.get(target) ?? Number(target.slice(target.lastIndexOf(':') + 1));
    const upstream = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      this.#pipe(socket, upstream);
      this.#pipe(upstream, socket);
    });
    this.#track(upstream);
  }

  #pipe(from: Socket, to: Socket): void {
    from.on('data', (piece: Buffer) => {
      this.seen += piece.toString('latin1');
      if (!to.write(piece)) from.pause();
    });
    to.on('drain', () => from.resume());
    from.on('close', () => to.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket));
  }
}

/** A server that ends TLS and passes the bytes to a port of this machine. */
export async function startTlsFront(port: number, files: { cert: string; key: string }): Promise<{ port: number; stop(): void }> {
  const sockets = new Set<Socket>();
  const server = createTlsServer(readFiles(files), (socket) => {
    const upstream = connect(port, '127.0.0.1');
    for (const [from, to] of [[socket, upstream] as const, [upstream, socket] as const]) {
      sockets.add(from);
      from.on('error', () => undefined).once('close', () => to.destroy());
      from.pipe(to);
    }
  });
  server.on('tlsClientError', () => undefined);
  await listen(server);
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

const readFiles = ({ cert, key }: { cert: string; key: string }) => ({ cert: readFileSync(cert), key: readFileSync(key) });

const listen = (server: Server): Promise<void> => new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
