import { WebSocket } from 'ws';
import { eventually } from '../gateway/start.ts';

export type Frame = Record<string, unknown> & { type: string };

/** A client that keeps every message. */
export class Client {
  readonly frames: Frame[] = [];
  closed: number | undefined;
  readonly socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer) => this.frames.push(JSON.parse(data.toString())));
    socket.on('close', (code: number) => {
      this.closed = code;
    });
    socket.on('error', () => undefined);
  }

  /** Resolves with the status when the gateway refuses. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<Client> {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/responses`, { headers, rejectUnauthorized: false });
    const client = new Client(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('unexpected-response', (_request, response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => {
          body += chunk.toString();
        });
        response.on('end', () => reject(new Refused(response.statusCode ?? 0, body)));
      });
    });
    return client;
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  create(fields: object): void {
    this.send({ type: 'response.create', ...fields });
  }

  /** Sends a request, and returns its events. */
  async turn(fields: object): Promise<Frame[]> {
    const from = this.frames.length;
    this.create(fields);
    await eventually(() => this.frames.slice(from).some(isLast));
    return this.frames.slice(from);
  }

  /** The first error from now on. */
  async nextError(): Promise<Frame> {
    const from = this.frames.length;
    return eventually(() => this.frames.slice(from).find(({ type }) => type === 'error'));
  }
}

export class Refused extends Error {
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super(`refused: ${status}`);
    this.status = status;
    this.body = body;
  }
}

const LAST = ['response.completed', 'response.failed', 'response.incomplete', 'error'];

export const isLast = ({ type }: Frame): boolean => LAST.includes(type);

export const readId = (frames: readonly Frame[]): string => {
  const last = frames.find(({ type }) => type === 'response.completed');
  return (last?.['response'] as { id: string } | undefined)?.id ?? ''; // the object of the last event
};

export const listTypes = (frames: readonly Frame[]): string[] => frames.map(({ type }) => type);
