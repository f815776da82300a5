/** The routes of the admin API: one table, from which requests are served, the OpenAPI document is written and tests are made. */

import { CODECS } from '@sluice/core/engine';
import { z } from 'zod';
import type { Capture } from '../capture/capture.ts';
import { chooseExampleModel, listClientSetups } from '../clients/setup.ts';
import type { ModelTarget } from '../config/resolve.ts';
import { type IssuedKey, type KeyBook, KeyError } from '../keys/key-book.ts';
import type { KeyRecord } from '../keys/records.ts';
import { readSpan } from '../keys/settings.ts';
import { createPriceTable } from '../prices/table.ts';
import type { AccessRequest } from './access.ts';
import { sendBackup } from './backup.ts';
import {
  checkPasted,
  MAX_VALIDATED_BODY,
  PASTED,
  RELOADS,
  SETTINGS,
  VALIDATION,
  VERSIONS,
  viewReloads,
  viewSettings,
  viewVersions,
} from './config.ts';
import { CONVERSATION, readConversation } from './conversation.ts';
import { CONVERSION_REQUEST, CONVERTED, convertForClient, MAX_CONVERTED_BYTES } from './convert.ts';
import { buildCaptureCase, CASE, EXAMINED, examineCapture } from './examine.ts';
import {
  AUDIT_ENTRY,
  CHANGED_KEY,
  ISSUED_KEY,
  KEY,
  KEY_STATES,
  listPage,
  NEW_KEY,
  pickSettings,
  ROTATION,
  viewAuditEntry,
  viewKey,
} from './keys.ts';
import { choice, cursor, filter, integer, names, search, text, time } from './parameters.ts';
import { Problem } from './problem.ts';
import { type AdminContext, PASSED_RESPONSE, type Reply, type Route, route } from './route.ts';
import { SEARCHED, searchCaptures } from './search.ts';
import { describeSender, REPLAY_QUERY, replayExchange, SEND_QUERY, SENDER, sendRequest } from './send.ts';
import { LazyList } from './serialize.ts';
import {
  ATTEMPT,
  BUDGET,
  CAPTURE,
  CAPTURE_SUMMARY,
  CLIENT,
  CONFIG,
  EXCHANGE,
  EXCHANGE_FIELDS,
  MODEL,
  PRICE,
  PROVIDER,
  SELECTED_EXCHANGE,
  SESSION,
  USAGE,
  viewAttempt,
  viewBudget,
  viewCapture,
  viewCaptureSummary,
  viewClient,
  viewConfig,
  viewExchange,
  viewModel,
  viewPrice,
  viewProvider,
  viewSession,
  viewUsage,
} from './views.ts';

const MAX_ROWS = 1000;

const limit = integer('Rows of a page.', 1, MAX_ROWS, 100);

const fields = names('Fields of an exchange to return; `id` is always returned. All by default.', EXCHANGE_FIELDS);

const page = { exchanges: z.array(SELECTED_EXCHANGE), next: z.string().nullable().describe('The cursor of the next page.') };

const KEY_REFERENCE = 'The public id of a client key, or its name if it is not revoked.';

/** How long a secret stays valid after a rotation. */
const DEFAULT_OVERLAP = '24h';

const TABLE = [
  route({
    method: 'GET',
    path: 'exchanges',
    about: 'Exchanges, newest first, by pages',
    access: 'read',
    query: { filter: search, limit, cursor, fields },
    response: z.strictObject({
      ...page,
      searched: SEARCHED.nullable().describe('What was searched for text; null without text.'),
    }),
    async handle({ query, caller, response, context }) {
      const { filter: wanted = [], texts = [] } = query.filter ?? {};
      if (texts.length > 0 && !caller.mayReadSensitive)
        throw new Problem(403, 'a search for text reads conversations, which needs an admin key or a session');
      if (texts.length > 0) {
        const { cursor: from, limit: rows = 100 } = query;
        const isAbandoned = (): boolean => response.destroyed;
        const asked = { texts: texts.map((one) => one.text), filter: wanted, cursor: from, limit: rows, isAbandoned };
        const { exchanges, next, searched } = await searchCaptures(asked, context);
        return { body: { exchanges: exchanges.map((row) => viewExchange(row, caller, query.fields)), next, searched } };
      }
      const found = await context.store.list({
        filter: wanted,
        ...(query.limit !== undefined && { limit: query.limit }),
        ...(query.cursor !== undefined && { cursor: query.cursor }),
      });
      const exchanges = new LazyList(found.exchanges, (row) => viewExchange(row, caller, query.fields));
      return { body: { exchanges, next: found.next, searched: null } };
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/count',
    about: 'How many exchanges pass a filter, and how many there are',
    access: 'read',
    query: { filter },
    response: z.strictObject({ matching: z.int(), is_exact: z.boolean(), total: z.int() }),
    async handle({ query, context: { store } }) {
      return { body: await store.count(query.filter) };
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/live',
    about: 'Exchanges as they are opened and settled, as server-sent events',
    access: 'read',
    query: { filter, fields, last_event_id: text('Resumes after this event, like the header Last-Event-ID.', 80) },
    response: 'text/event-stream',
    handle({ query, headers, response, caller, isAllowed, context: { feed, redact } }) {
      feed.listen(response, {
        filter: query.filter,
        lastEventId: headers['last-event-id'] ?? query.last_event_id,
        format: (row) => redact(JSON.stringify(viewExchange(row, caller, query.fields))),
        isAllowed,
      });
      return undefined;
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/{id}',
    about: 'One exchange with its attempts',
    idAbout: 'The id of an exchange.',
    access: 'read',
    response: z.strictObject({ exchange: EXCHANGE, attempts: z.array(ATTEMPT) }),
    hasEtag: true,
    async handle({ id, caller, context: { store } }) {
      const found = await store.get(id);
      if (!found) throw new Problem(404, `no exchange has the id ${quote(id)}`);
      return { body: { exchange: viewExchange(found.exchange, caller), attempts: found.attempts.map(viewAttempt) } };
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/{id}/tape',
    about: 'A captured exchange with its bodies, reads and attempts; bodies are in base64',
    idAbout: 'The id of an exchange.',
    access: 'sensitive',
    response: CAPTURE,
    async handle({ id, context }) {
      return { body: viewCapture(await requireCapture(id, context)) };
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/{id}/conversation',
    about: 'The messages of a captured exchange, read from the request and the response of the client',
    idAbout: 'The id of an exchange.',
    access: 'sensitive',
    response: CONVERSATION,
    async handle({ id, context }) {
      return { body: await readConversation(await requireCapture(id, context)) };
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/{id}/doctor',
    about: 'What the doctor finds in the upstream responses of a captured exchange',
    idAbout: 'The id of an exchange.',
    access: 'sensitive',
    response: EXAMINED,
    async handle({ id, context }) {
      return { body: await examineCapture(await requireCapture(id, context)) };
    },
  }),
  route({
    method: 'GET',
    path: 'exchanges/{id}/case',
    about: 'The first upstream response of a captured exchange that violates its protocol, as a case for tests',
    idAbout: 'The id of an exchange.',
    access: 'sensitive',
    response: CASE,
    async handle({ id, context }) {
      return { body: await buildCaptureCase(await requireCapture(id, context)) };
    },
  }),
  route({
    method: 'POST',
    path: 'exchanges/{id}/replay',
    about: 'Sends the request of a captured exchange again; the response is that of the model, in the same protocol',
    idAbout: 'The id of an exchange.',
    access: 'sensitive',
    query: REPLAY_QUERY,
    response: PASSED_RESPONSE,
    handle: replayExchange,
  }),
  route({
    method: 'GET',
    path: 'requests',
    about: 'Keys and models that requests of the console can have',
    access: 'read',
    response: SENDER,
    handle({ context }) {
      return { body: describeSender(context) };
    },
  }),
  route({
    method: 'POST',
    path: 'requests',
    about: 'Sends a request of any client protocol under a client key, without its secret; the response is that of the model',
    access: 'sensitive',
    query: SEND_QUERY,
    passedBody: z.record(z.string(), z.unknown()),
    response: PASSED_RESPONSE,
    handle: sendRequest,
  }),
  route({
    method: 'POST',
    path: 'requests/convert',
    about: 'A request in another protocol or for another model, with what is lost; nothing is sent',
    access: 'sensitive',
    body: CONVERSION_REQUEST,
    maxBodyBytes: MAX_CONVERTED_BYTES,
    response: CONVERTED,
    handle({ body }) {
      return { body: convertForClient(body) };
    },
  }),
  route({
    method: 'GET',
    path: 'captures',
    about: 'Captured exchanges without their bodies, newest first',
    access: 'sensitive',
    query: { limit },
    response: z.strictObject({ captures: z.array(CAPTURE_SUMMARY) }),
    async handle({ query, context: { captures } }) {
      return { body: { captures: (await captures.list(query.limit)).map(viewCaptureSummary) } };
    },
  }),
  route({
    method: 'GET',
    path: 'sessions',
    about: 'Recent sessions, newest first',
    access: 'read',
    query: { limit },
    response: z.strictObject({ sessions: z.array(SESSION) }),
    async handle({ query, context: { store } }) {
      return { body: { sessions: (await store.sessions(query.limit)).map(viewSession) } };
    },
  }),
  route({
    method: 'GET',
    path: 'sessions/{id}',
    about: 'One session with a page of its exchanges, newest first',
    idAbout: 'The id of a session, as the client sent it.',
    access: 'read',
    query: { limit, cursor, fields },
    response: z.strictObject({ session: SESSION, ...page }),
    async handle({ id, query, caller, context: { store } }) {
      const found = await store.session(id, {
        ...(query.limit !== undefined && { limit: query.limit }),
        ...(query.cursor !== undefined && { cursor: query.cursor }),
      });
      if (!found) throw new Problem(404, `no session has the id ${quote(id)}`);
      const exchanges = new LazyList(found.exchanges, (row) => viewExchange(row, caller, query.fields));
      return { body: { session: viewSession(found.session), exchanges, next: found.next } };
    },
  }),
  route({
    method: 'GET',
    path: 'usage',
    about: 'Requests, tokens and cost of settled exchanges, by group and time',
    access: 'read',
    query: {
      by: choice('What to group by; `model` by default.', ['model', 'provider', 'key', 'tag', 'day']),
      since: time('From this time on, rounded down to the hour.'),
      until: time('Before this time, rounded up to the hour.'),
      bucket: choice('Also splits by time.', ['hour', 'day']),
      key: text('Only this key.'),
      model: text('Only this model.'),
      provider: text('Only this provider.'),
      tag: text('Only this tag.'),
    },
    response: z.strictObject({ by: z.string(), usage: z.array(USAGE) }),
    async handle({ query: { by = 'model', since, until, bucket, ...where }, context: { store } }) {
      const usage = await store.usage({
        by,
        ...(since !== undefined && { since }),
        ...(until !== undefined && { until }),
        ...(bucket !== undefined && { bucket }),
        where: Object.fromEntries(Object.entries(where).filter(([, value]) => value !== undefined)),
      });
      return { body: { by, usage: usage.map(viewUsage) } };
    },
  }),
  route({
    method: 'GET',
    path: 'providers',
    about: 'Providers: health, pauses after failures, and recent requests',
    access: 'read',
    response: z.strictObject({ providers: z.array(PROVIDER) }),
    async handle({ context: { store, state, breakers, now } }) {
      const usage = await store.usage({ by: 'provider', since: now() - HOUR_MS });
      const byProvider = new Map(usage.map((row) => [row.group, row]));
      const paused = breakers.listPaused();
      const providers = [...state().providers.values()];
      return { body: { providers: providers.map((provider) => viewProvider(provider, paused, byProvider.get(provider.id))) } };
    },
  }),
  route({
    method: 'GET',
    path: 'models',
    about: 'Model names of the configuration: targets, limits and prices',
    access: 'read',
    response: z.strictObject({ models: z.array(MODEL) }),
    handle({ context }) {
      const state = context.state();
      const facts = { prices: createPriceTable(state), findLimit, now: context.now() };
      return { body: { models: state.models.map((name) => viewModel(name, state.resolveModel(name) ?? [], facts)) } };
    },
  }),
  route({
    method: 'GET',
    path: 'clients',
    about: 'What to set or paste so that a client uses this gateway, as `sluice env` prints it',
    access: 'read',
    query: { model: text('The model to set up; by default the first one that has a name without a star.') },
    response: z.strictObject({ model: z.string(), needs_key: z.boolean(), clients: z.array(CLIENT) }),
    handle({ query, request, context: { state, hasKeys } }) {
      const { models, providers } = state();
      const model = query.model ?? chooseExampleModel(models, [...providers.values()]);
      const target = { url: findOwnUrl(request), model, key: hasKeys() ? 'YOUR_KEY' : 'any' };
      return { body: { model, needs_key: hasKeys(), clients: listClientSetups(target).map(viewClient) } };
    },
  }),
  route({
    method: 'GET',
    path: 'prices',
    about: 'The version of the price table, and the price of one model',
    access: 'read',
    query: { provider: text('The id of a provider.'), model: text('The name of the model at that provider.') },
    response: z.strictObject({ version: z.string(), configured: z.array(z.string()), price: PRICE.nullable() }),
    handle({ query: { provider, model }, context }) {
      if ((provider === undefined) !== (model === undefined))
        throw new Problem(400, 'provider and model are needed together, or neither of them');
      const state = context.state();
      const table = createPriceTable(state);
      const price = provider === undefined || model === undefined ? null : viewPrice(table.find(provider, model), context.now());
      return { body: { version: table.version, configured: Object.keys(state.prices), price } };
    },
  }),
  route({
    method: 'GET',
    path: 'budgets',
    about: 'Budgets of tags and keys: limit, spent, reserved by running requests, left',
    access: 'read',
    response: z.strictObject({ budgets: z.array(BUDGET) }),
    async handle({ context: { listBudgets } }) {
      return { body: { budgets: (await listBudgets()).map(viewBudget) } };
    },
  }),
  route({
    method: 'GET',
    path: 'config',
    about: 'The configuration in force, without secrets',
    access: 'read',
    response: CONFIG,
    hasEtag: true,
    handle({ context: { state, file, store, keys } }) {
      return { body: viewConfig(state(), { file, folder: store.folder, storedKeys: keys.count }) };
    },
  }),
  route({
    method: 'GET',
    path: 'config/settings',
    about: 'Every setting in force with its origin; secrets as references, or not at all',
    access: 'sensitive',
    response: SETTINGS,
    handle: ({ context: { config } }) => ({ body: viewSettings(config) }),
  }),
  route({
    method: 'GET',
    path: 'config/reloads',
    about: 'The last reloads of the configuration since the start, newest first',
    access: 'sensitive',
    response: RELOADS,
    handle: ({ context: { config } }) => ({ body: viewReloads(config) }),
  }),
  route({
    method: 'GET',
    path: 'config/versions',
    about: 'The versions of the configuration in the database, newest first; the first one is in force',
    access: 'sensitive',
    query: { limit },
    response: VERSIONS,
    handle: async ({ query, context: { config, store } }) => ({
      body: await viewVersions(config, store.configs, query.limit ?? 100),
    }),
  }),
  route({
    method: 'POST',
    path: 'config/validate',
    about: 'Checks the text of a configuration file; nothing is changed, and references are not resolved',
    access: 'sensitive',
    body: PASTED,
    maxBodyBytes: MAX_VALIDATED_BODY,
    response: VALIDATION,
    handle: async ({ body, context: { state } }) => ({ body: await checkPasted(body.text, state()) }),
  }),
  route({
    method: 'GET',
    path: 'store',
    about: 'The state of the ledger',
    access: 'read',
    response: z.strictObject({
      is_persistent: z.boolean(),
      accepting: z.boolean(),
      integrity: z.enum(['unchecked', 'checking', 'ok', 'damaged']),
      queued_rows: z.int(),
      written_rows: z.int(),
      rejected_rows: z.int(),
      failed_batches: z.int(),
      crashed_exchanges: z.int(),
      last_error: z.string().nullable(),
    }),
    handle({ context: { store } }) {
      return { body: { is_persistent: store.isPersistent, ...store.status() } };
    },
  }),
  route({
    method: 'GET',
    path: 'whoami',
    about: 'How the caller was recognised, and what it may do',
    access: 'read',
    response: z.strictObject({
      access: z.enum(['key', 'session', 'local']),
      may_read_sensitive: z.boolean(),
      expires_at: z.iso.datetime().nullable(),
      boot_id: z.string(),
    }),
    handle({ caller: { kind, expires, mayReadSensitive }, context: { store } }) {
      const expires_at = expires === null ? null : new Date(expires).toISOString();
      return { body: { access: kind, may_read_sensitive: mayReadSensitive, expires_at, boot_id: store.boot } };
    },
  }),
  route({
    method: 'GET',
    path: 'session',
    about: 'Whether the browser has a session of the console, and how it may log in',
    access: 'login',
    response: z.strictObject({
      csrf_token: z
        .string()
        .nullable()
        .describe('For the header x-sluice-csrf of requests that change something; null without a session.'),
      expires_at: z.iso.datetime().nullable(),
      may_login: z.boolean(),
      accepts: z.array(z.enum(['token', 'key'])),
      reason: z.string().nullable().describe('Why the browser may not log in.'),
    }),
    handle({ request, context: { access } }) {
      const session = access.findSession(request);
      const { mayLogin, accepts, reason } = access.describeLogin(request);
      const expires_at = session?.expires ? new Date(session.expires).toISOString() : null;
      return { body: { csrf_token: session?.csrf ?? null, expires_at, may_login: mayLogin, accepts, reason } };
    },
  }),
  route({
    method: 'POST',
    path: 'session',
    about: 'Opens a session of the console, by a one-time token or the admin key; the response sets a cookie',
    access: 'login',
    body: z.union([z.strictObject({ token: z.string().min(1).max(512) }), z.strictObject({ key: z.string().min(1).max(4096) })]),
    response: z.strictObject({ csrf_token: z.string(), expires_at: z.iso.datetime() }),
    async handle({ body, request, context: { access, audit } }) {
      const { cookie, csrf, expires } = access.login(body, request);
      await audit('key' in body ? 'key' : 'session', 'session.open');
      return { body: { csrf_token: csrf, expires_at: new Date(expires).toISOString() }, headers: { 'set-cookie': cookie } };
    },
  }),
  route({
    method: 'DELETE',
    path: 'session',
    about: 'Ends the session of the console',
    access: 'read',
    response: z.strictObject({ ended: z.literal(true) }),
    async handle({ request, caller, context: { access, audit } }) {
      const cookie = access.logout(request);
      await audit(caller.kind, 'session.end');
      return { body: { ended: true }, headers: { 'set-cookie': cookie } };
    },
  }),
  route({
    method: 'POST',
    path: 'backup',
    about: 'A copy of the database, made while the gateway runs',
    access: 'sensitive',
    response: 'application/vnd.sqlite3',
    async handle({ response, caller, context }) {
      await context.audit(caller.kind, 'backup');
      await sendBackup(response, context);
      return undefined;
    },
  }),
  route({
    method: 'GET',
    path: 'keys',
    about: 'Client keys without their secrets, oldest first, by pages',
    access: 'read',
    query: { state: choice('Only keys of this state.', KEY_STATES), limit, cursor: text('`next` of the page before.', 64) },
    response: z.strictObject({ keys: z.array(KEY), next: z.string().nullable().describe('The cursor of the next page.') }),
    handle({ query, context: { keys, now } }) {
      return { body: listPage(keys.list(), query, now()) };
    },
  }),
  route({
    method: 'POST',
    path: 'keys',
    about: 'Creates a client key; the response shows its secret once',
    access: 'sensitive',
    body: NEW_KEY,
    response: ISSUED_KEY,
    async handle({ body, caller, context }) {
      const { name = '', ...settings } = pickSettings(body);
      return viewIssued(await context.keys.create(name, settings, caller.kind), context);
    },
  }),
  route({
    method: 'GET',
    path: 'keys/{id}',
    about: 'One client key, without its secret',
    idAbout: KEY_REFERENCE,
    access: 'read',
    response: KEY,
    handle({ id, context: { keys, now } }) {
      return { body: viewKey(requireKey(keys, id), now()) };
    },
  }),
  route({
    method: 'PATCH',
    path: 'keys/{id}',
    about: 'Changes the name or the settings of a client key; absent ones stay',
    idAbout: KEY_REFERENCE,
    access: 'sensitive',
    body: CHANGED_KEY,
    response: KEY,
    async handle({ id, body, caller, context: { keys, now } }) {
      return { body: viewKey(await keys.edit(id, pickSettings(body), caller.kind), now()) };
    },
  }),
  route({
    method: 'DELETE',
    path: 'keys/{id}',
    about: 'Revokes a client key; it stays listed',
    idAbout: KEY_REFERENCE,
    access: 'sensitive',
    query: { now: choice('`true` also ends the running requests of the key.', ['true', 'false']) },
    response: KEY,
    async handle({ id, query, caller, context: { keys, now } }) {
      return { body: viewKey(await keys.revoke(id, query.now === 'true', caller.kind), now()) };
    },
  }),
  route({
    method: 'POST',
    path: 'keys/{id}/rotate',
    about: 'Gives a client key another secret, which the response shows once',
    idAbout: KEY_REFERENCE,
    access: 'sensitive',
    body: ROTATION,
    response: ISSUED_KEY,
    async handle({ id, body: { overlap = DEFAULT_OVERLAP }, caller, context }) {
      return viewIssued(await context.keys.rotate(id, readSpan('overlap', overlap), caller.kind), context);
    },
  }),
  route({
    method: 'GET',
    path: 'audit',
    about: 'Changes by operators, newest first, by pages',
    access: 'read',
    query: { limit, cursor, text: text('Only entries with this text in actor, action, object or details.') },
    response: z.strictObject({
      entries: z.array(AUDIT_ENTRY),
      next: z.string().nullable().describe('The cursor of the next page.'),
    }),
    async handle({ query, context: { store } }) {
      const { entries, next } = await store.listAudit({
        cursor: query.cursor ?? null,
        limit: query.limit ?? 100,
        text: query.text ?? '',
      });
      return { body: { entries: entries.map(viewAuditEntry), next } };
    },
  }),
  route({
    method: 'GET',
    path: 'openapi.json',
    about: 'This API as an OpenAPI 3.1 document',
    access: 'read',
    response: z.looseObject({ openapi: z.literal('3.1.0') }),
    handle({ context }) {
      return { body: context.document() };
    },
  }),
];

/** Every route of the API. */
export const ROUTES: readonly Route[] = TABLE;

/** The routes with their types. */
export type AdminRoutes = (typeof TABLE)[number];

async function requireCapture(id: string, { captures }: AdminContext): Promise<Capture> {
  const capture = await captures.get(id);
  if (!capture) throw new Problem(404, `no capture of an exchange has the id ${quote(id)}; see docs/capture.md`);
  return capture;
}

/** A key with its new secret, and whether it outlives the gateway. */
const viewIssued = ({ record, text: secret }: IssuedKey, { store, now }: AdminContext): Reply => ({
  body: { key: viewKey(record, now()), secret, is_persistent: store.isPersistent },
  showsSecret: true,
});

function requireKey(keys: KeyBook, id: string): KeyRecord {
  const record = keys.find(id);
  if (!record) throw new KeyError('unknown', `no key has the name or id ${quote(id)}`);
  return record;
}

const HOUR_MS = 3_600_000;

/** The address that the caller reached the gateway by. The host is that of the request, so it is checked. */
function findOwnUrl({ headers, client }: AccessRequest): string {
  const url = `${client.scheme}://${client.host ?? headers['host'] ?? ''}`;
  return URL.canParse(url) && new URL(url).origin === url ? url : 'http://127.0.0.1:4141';
}

const quote = (value: string): string => JSON.stringify(value.slice(0, 100));

/** The default of a profile is a guess for unknown models, so it is not shown. */
function findLimit({ provider: { provider, profileId }, model }: ModelTarget): number | null {
  const codec = CODECS[provider.protocol];
  const limit = provider.profile?.max_output_tokens ?? codec.profileFor(profileId, model).max_output_tokens;
  return limit === undefined || limit === codec.profileFor('', '').max_output_tokens ? null : limit;
}
