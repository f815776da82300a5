/** Where `sluice keys` and `sluice audit` read and change keys: through the admin API, or in a data folder without a gateway. */

import { oneLine } from '@sluice/lab/text';
import type { z } from 'zod';
import type { AUDIT_ENTRY, ISSUED_KEY, KEY } from '../../admin/keys.ts';
import { KeyBook, KeyError } from '../../keys/key-book.ts';
import type { AuditQuery } from '../../keys/records.ts';
import { KeySettingError, type KeySettings, readSpan } from '../../keys/settings.ts';
import { listFiles, openStore, openStoreReader, StoreError, type StoreReader } from '../../store/index.ts';
import { isPostgres } from '../../store/postgres/address.ts';
import { UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { readHome } from '../home.ts';
import { type AdminClient, ApiError } from '../ledger/admin-client.ts';
import {
  type Access,
  choosePlace,
  describePlace,
  explainError,
  type FolderPlace,
  requireDatabase,
  SET_KEY,
  type SourceOptions,
} from '../ledger/open.ts';

/** A key as the admin API shows it. */
export type KeyView = z.infer<typeof KEY>;

/** A key with its new secret. */
export type IssuedView = z.infer<typeof ISSUED_KEY>;

/** A line of the audit log. */
export type AuditView = z.infer<typeof AUDIT_ENTRY>;

/** What the commands need. Keys are named by their names or public ids. */
export interface KeySource {
  /** For messages. */
  readonly name: string;
  list(): Promise<KeyView[]>;
  get(reference: string): Promise<KeyView>;
  create(name: string, settings: KeySettings): Promise<IssuedView>;
  edit(reference: string, settings: KeySettings & { readonly name?: string }): Promise<KeyView>;
  rotate(reference: string, overlap: string): Promise<IssuedView>;
  revoke(reference: string, isImmediate: boolean): Promise<KeyView>;
  audit(query: AuditQuery): Promise<{ entries: AuditView[]; next: string | null }>;
}

/** No key has this name or id. */
export class UnknownKeyError extends Error {}

/** Calls `use` with the source that the options choose. `create`: the first key may create the data folder. */
export async function withKeys(
  options: SourceOptions,
  io: CliIo,
  access: Access,
  use: (source: KeySource) => Promise<number>,
): Promise<number> {
  let name = 'the gateway';
  let details = '';
  try {
    const place = await choosePlace(options, io, access);
    const source =
      place.kind === 'gateway'
        ? new GatewayKeys(place.client)
        : new FolderKeys(place, await choosePepper(place.folder, options, io), access === 'create');
    name = source.name;
    if (place.kind === 'folder') details = place.details;
    const { dim } = chooseColors(io.stderr, io.env);
    await io.stderr.write(`${dim(`sluice: using ${oneLine(name)}`)}\n`);
    return await use(source);
  } catch (error) {
    throw toCommandError(error, name, details);
  }
}

/** The file of the pepper: that of the configuration, or the one in the data folder. */
async function choosePepper(place: string, { config }: SourceOptions, io: CliIo): Promise<string> {
  const home = await readHome(config, io);
  const folder = isPostgres(place) ? home.folder : place;
  const file = home.pepperFile ?? (folder && listFiles(folder).pepper);
  if (file === undefined)
    throw new UsageError('keys in a PostgreSQL database need the pepper of its nodes; set auth.pepper_file in sluice.yaml');
  return file;
}

/** Mistakes of the user become usage errors, everything else errors of the source. */
function toCommandError(error: unknown, name: string, details: string): unknown {
  if (error instanceof KeySettingError) return new UsageError(`--${toOption(error.setting)} ${error.message}`, { cause: error });
  if (error instanceof KeyError)
    return error.code === 'unknown'
      ? new UnknownKeyError(error.message)
      : new UsageError(oneLine(error.message), { cause: error });
  if (error instanceof StoreError && error.code === 'owned')
    return new UsageError(`${oneLine(error.message)}, or change keys through its admin API: ${SET_KEY}${details}`, {
      cause: error,
    });
  if (!(error instanceof ApiError)) return explainError(error, name);
  const detail = error.detail ?? error.message;
  if (error.status === 404 && detail.startsWith('no key has')) return new UnknownKeyError(detail);
  return error.status === 400 || error.status === 409
    ? new UsageError(oneLine(detail), { cause: error })
    : explainError(error, name);
}

const toOption = (setting: string): string => (setting === 'tags' ? 'tag' : setting);

/** Keys of a running gateway. */
class GatewayKeys implements KeySource {
  readonly name: string;
  readonly #client: AdminClient;

  constructor(client: AdminClient) {
    this.name = client.name;
    this.#client = client;
  }

  async list(): Promise<KeyView[]> {
    const keys: KeyView[] = [];
    for (let cursor: string | null = null; ; ) {
      // The gateway checks its responses against these types in its tests.
      const page = (await this.#client.get('keys', { cursor, limit: '1000' })) as { keys: KeyView[]; next: string | null };
      keys.push(...page.keys);
      if (page.next === null || page.next === cursor) return keys;
      cursor = page.next;
    }
  }

  async get(reference: string): Promise<KeyView> {
    return (await this.#client.get(toPath(reference))) as KeyView;
  }

  async create(name: string, settings: KeySettings): Promise<IssuedView> {
    return (await this.#client.change('POST', 'keys', { body: { name, ...settings } })) as IssuedView;
  }

  async edit(reference: string, settings: KeySettings): Promise<KeyView> {
    return (await this.#client.change('PATCH', toPath(reference), { body: settings })) as KeyView;
  }

  async rotate(reference: string, overlap: string): Promise<IssuedView> {
    return (await this.#client.change('POST', `${toPath(reference)}/rotate`, { body: { overlap } })) as IssuedView;
  }

  async revoke(reference: string, isImmediate: boolean): Promise<KeyView> {
    const parameters = { now: isImmediate ? 'true' : undefined };
    return (await this.#client.change('DELETE', toPath(reference), { parameters })) as KeyView;
  }

  async audit({ cursor, limit }: AuditQuery): Promise<{ entries: AuditView[]; next: string | null }> {
    const parameters = { cursor, limit: limit === undefined ? undefined : String(limit) };
    return (await this.#client.get('audit', parameters)) as { entries: AuditView[]; next: string | null };
  }
}

const toPath = (reference: string): string => `keys/${encodeURIComponent(reference)}`;

/** Keys of a data folder. Reading works beside a gateway; changes need the folder, which a running gateway owns. */
class FolderKeys implements KeySource {
  readonly name: string;
  readonly #folder: string;
  readonly #pepperFile: string;
  readonly #mayBeNew: boolean;

  constructor({ folder, why }: FolderPlace, pepperFile: string, mayBeNew: boolean) {
    this.name = `${describePlace(folder)}${why === undefined ? '' : ` (${why})`}`;
    this.#folder = folder;
    this.#pepperFile = pepperFile;
    this.#mayBeNew = mayBeNew;
  }

  list(): Promise<KeyView[]> {
    return this.#read(async (reader) => {
      const { viewKey } = await import('../../admin/keys.ts');
      return (await reader.listKeys()).map((record) => viewKey(record, Date.now()));
    });
  }

  async get(reference: string): Promise<KeyView> {
    const keys = await this.list();
    const found =
      keys.find(({ id }) => id === reference) ?? keys.find(({ name, state }) => name === reference && state !== 'revoked');
    if (!found) throw new UnknownKeyError(`no key has the name or id "${oneLine(reference)}"`);
    return found;
  }

  create(name: string, settings: KeySettings): Promise<IssuedView> {
    return this.#issue((book) => book.create(name, settings, 'cli'));
  }

  edit(reference: string, settings: KeySettings & { readonly name?: string }): Promise<KeyView> {
    return this.#change(async (book) => this.#view(await book.edit(reference, settings, 'cli')));
  }

  rotate(reference: string, overlap: string): Promise<IssuedView> {
    return this.#issue((book) => book.rotate(reference, readSpan('overlap', overlap), 'cli'));
  }

  revoke(reference: string, isImmediate: boolean): Promise<KeyView> {
    return this.#change(async (book) => this.#view(await book.revoke(reference, isImmediate, 'cli')));
  }

  audit(query: AuditQuery): Promise<{ entries: AuditView[]; next: string | null }> {
    return this.#read(async (reader) => {
      const { viewAuditEntry } = await import('../../admin/keys.ts');
      const { entries, next } = await reader.listAudit(query);
      return { entries: entries.map(viewAuditEntry), next };
    });
  }

  async #view(record: Awaited<ReturnType<KeyBook['edit']>>): Promise<KeyView> {
    const { viewKey } = await import('../../admin/keys.ts');
    return viewKey(record, Date.now());
  }

  #issue(work: (book: KeyBook) => ReturnType<KeyBook['create']>): Promise<IssuedView> {
    return this.#change(async (book) => {
      const { record, text } = await work(book);
      return { key: await this.#view(record), secret: text, is_persistent: true };
    });
  }

  async #read<Value>(work: (reader: StoreReader) => Promise<Value>): Promise<Value> {
    requireDatabase(this.#folder);
    const reader = await openStoreReader(this.#folder);
    try {
      return await work(reader);
    } finally {
      await reader.close();
    }
  }

  /** Without the pepper, keys can still be revoked: that is how an operator recovers from its loss. */
  async #change<Value>(work: (book: KeyBook) => Promise<Value>): Promise<Value> {
    if (!this.#mayBeNew) requireDatabase(this.#folder);
    // A command deletes nothing and reserves no space.
    const place = isPostgres(this.#folder) ? { folder: null, url: this.#folder } : { folder: this.#folder };
    const store = await openStore({ ...place, retentionDays: null, ballastBytes: 0 });
    try {
      const book = await KeyBook.open({ store, pepperFile: this.#pepperFile, requiresPepper: false });
      const value = await work(book).finally(() => book.close());
      return value;
    } finally {
      await store.close();
    }
  }
}
