/** Home: is the gateway well, what can be used, how to point a client at it, and what happened last. */

import type { Client, Model, Provider } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, useLoaded } from '../lib/data.ts';
import { formatCost, formatCount, formatDuration, formatTime } from '../lib/format.ts';
import { listenLive } from '../lib/live.ts';
import { formatRoute } from '../lib/router.ts';
import { Await, ProtocolBadge, Section, Snippet, Status } from '../ui/parts.tsx';

const REFRESH_MS = 5000;

/** The first page. */
export default function Home(): JSX.Element {
  return (
    <div class="home">
      <h1 class="visually-hidden">Home</h1>
      <StatusSection />
      <LatestSection />
      <ProviderSection />
      <ModelSection />
      <ClientSection />
    </div>
  );
}

function StatusSection(): JSX.Element {
  const state = useLoaded(
    async (signal) => {
      const [config, store] = await Promise.all([call('GET config', { signal }), call('GET store', { signal })]);
      return { config, store };
    },
    [],
    { everyMs: REFRESH_MS },
  );
  return (
    <Section title="Status">
      <Await state={state}>
        {({ config, store }) => (
          <>
            <dl class="facts">
              <Fact name="Ledger">{describeStore(store)}</Fact>
              <Fact name="Address">{location.origin}</Fact>
              <Fact name="Configuration">{config.file ?? 'environment only'}</Fact>
              <Fact name="Client keys">{describeKeys(config)}</Fact>
            </dl>
            {config.warnings.map((warning) => (
              <p key={warning} class="warning">
                {warning}
              </p>
            ))}
          </>
        )}
      </Await>
    </Section>
  );
}

/** Keys of the file and of the store. A gateway without any is open to this machine. */
function describeKeys({ client_keys, stored_keys }: { client_keys: number; stored_keys: number }): string {
  if (client_keys + stored_keys === 0) return 'none: this machine only';
  return `${stored_keys} created, ${client_keys} in the configuration`;
}

interface StoreStatus {
  is_persistent: boolean;
  accepting: boolean;
  written_rows: number;
  last_error: string | null;
}

const describeStore = ({ is_persistent, accepting, written_rows, last_error }: StoreStatus): string =>
  accepting
    ? `recording ${is_persistent ? 'to disk' : 'in memory'}, ${formatCount(written_rows)} rows`
    : `not recording: ${last_error ?? 'unknown'}`;

const Fact = ({ name, children }: { name: string; children: string }): JSX.Element => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

const LATEST = [
  'created_at',
  'outcome',
  'http_status',
  'client_protocol',
  'upstream_protocol',
  'model_requested',
  'model',
  'total_ms',
  'cost_micros',
];

function LatestSection(): JSX.Element {
  const load = (signal: AbortSignal) => call('GET exchanges', { signal, query: { limit: 8, fields: LATEST.join(',') } });
  const state = useLoaded(load, [], { revision: useChanges() });
  const all = formatRoute({ page: 'exchanges', parameters: {} });
  return (
    <Section title="Latest exchanges" aside={<a href={all}>all, live</a>}>
      <Await state={state}>
        {({ exchanges }) =>
          exchanges.length === 0 ? (
            <EmptyState />
          ) : (
            <table class="plain">
              <thead>
                <tr>
                  <th scope="col">time</th>
                  <th scope="col">status</th>
                  <th scope="col">protocols</th>
                  <th scope="col">model</th>
                  <th scope="col">duration</th>
                  <th scope="col">cost</th>
                </tr>
              </thead>
              <tbody>
                {exchanges.map((row) => (
                  <tr key={row.id}>
                    <td>
                      <a href={formatRoute({ page: 'exchanges', parameters: { id: row.id } })}>
                        {formatTime(row.created_at ?? '')}
                      </a>
                    </td>
                    <td>
                      <Status outcome={row.outcome ?? 'live'} status={row.http_status ?? null} />
                    </td>
                    <td>
                      <ProtocolBadge id={row.client_protocol} />→<ProtocolBadge id={row.upstream_protocol} />
                    </td>
                    <td class="cut">{row.model_requested ?? row.model ?? '–'}</td>
                    <td class="number">{formatDuration(row.total_ms)}</td>
                    <td class="number">{formatCost(row.cost_micros)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Await>
    </Section>
  );
}

/** Rises when exchanges were opened or settled, twice a second at most. */
function useChanges(): number {
  const [revision, setRevision] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const note = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setRevision((before) => before + 1);
      }, CHANGES_MS);
    };
    const stop = listenLive({ fields: ['id'], onRows: note, onGap: note, onState: () => undefined });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return revision;
}

const CHANGES_MS = 500;

/** What to do when nothing has happened yet. */
function EmptyState(): JSX.Element {
  const state = useLoaded((signal) => call('GET clients', { signal }), []);
  return (
    <>
      <p>Nothing yet. Send a request, and it appears here:</p>
      <Await state={state}>
        {({ clients, needs_key }) => (
          <>
            <Snippet label="A request by curl" text={clients.find(({ id }) => id === 'curl')?.setup ?? ''} />
            {needs_key && (
              <p>
                Replace YOUR_KEY by a client key;{' '}
                <a href={formatRoute({ page: 'keys', parameters: { action: 'create' } })}>create one</a>.
              </p>
            )}
          </>
        )}
      </Await>
    </>
  );
}

function ProviderSection(): JSX.Element {
  const state = useLoaded((signal) => call('GET providers', { signal }), [], { everyMs: REFRESH_MS });
  return (
    <Section title="Providers">
      <Await state={state}>
        {({ providers }) => (
          <ul class="cards">
            {providers.map((provider) => (
              <ProviderCard key={provider.id} provider={provider} />
            ))}
          </ul>
        )}
      </Await>
    </Section>
  );
}

function ProviderCard({ provider }: { provider: Provider }): JSX.Element {
  const { id, title, protocol, origin, health, endpoints, paused, recent, key_from, has_key } = provider;
  return (
    <li>
      <div class="row">
        <strong>{id}</strong>
        <ProtocolBadge id={protocol} />
        <span class="grow" />
        <span class={`status s-${health === 'up' ? 'ok' : 'error'}`}>{health === 'up' ? 'up' : 'paused'}</span>
      </div>
      <div class="muted cut">{origin ?? title}</div>
      <div class="muted">
        {recent.requests} requests, {recent.errors} errors, {formatDuration(recent.mean_ms)} mean
        {has_key && key_from ? `, key from ${key_from}` : ''}
        {endpoints > 1 ? `, ${endpoints} keys and addresses` : ''}
      </div>
      {paused.map(({ model, endpoint, remaining_ms, failures, reason }) => (
        <div key={`${model} ${endpoint}`} class="warning">
          {model}
          {endpoint === null ? '' : `, ${endpoint}`}: paused for {formatDuration(remaining_ms)} after {failures} failures (
          {reason})
        </div>
      ))}
    </li>
  );
}

function ModelSection(): JSX.Element {
  const state = useLoaded((signal) => call('GET models', { signal }), []);
  return (
    <Section title="Models" aside={<a href={formatRoute({ page: 'models', parameters: {} })}>limits and prices</a>}>
      <Await state={state}>
        {({ models }) =>
          models.length === 0 ? (
            <p>
              No names are configured. Use <code>PROVIDER/MODEL</code>, or <code>demo/hello</code> to try the gateway.
            </p>
          ) : (
            <ul class="models">
              {models.map((model) => (
                <ModelLine key={model.id} model={model} />
              ))}
            </ul>
          )
        }
      </Await>
    </Section>
  );
}

const ModelLine = ({ model: { id, targets } }: { model: Model }): JSX.Element => (
  <li>
    <a href={formatRoute({ page: 'exchanges', parameters: { filter: `model:${/\s/.test(id) ? `"${id}"` : id}` } })}>{id}</a>
    <span class="muted"> → {targets.map(({ provider, model }) => `${provider}/${model}`).join(', then ')}</span>
  </li>
);

function ClientSection(): JSX.Element {
  const state = useLoaded((signal) => call('GET clients', { signal }), []);
  return (
    <Section title="Point a client at this gateway">
      <Await state={state}>{({ clients, needs_key }) => <ClientChooser clients={clients} needsKey={needs_key} />}</Await>
    </Section>
  );
}

function ClientChooser({ clients, needsKey }: { clients: readonly Client[]; needsKey: boolean }): JSX.Element {
  const [chosen, setChosen] = useState('claude');
  const client = clients.find(({ id }) => id === chosen) ?? clients[0];
  return (
    <>
      <p class="row">
        <label for="client">Client</label>
        <select id="client" value={client?.id} onChange={(event) => setChosen(event.currentTarget.value)}>
          {clients.map(({ id, title }) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
        {needsKey && <span class="muted">replace YOUR_KEY by a client key</span>}
      </p>
      {client?.start && <Snippet label={`A line that starts ${client.title} once`} text={client.start} />}
      {client && client.setup !== client.start && <Snippet label={`Settings of ${client.title}`} text={client.setup} />}
      {client?.install && (
        <p class="muted">
          Install: <code>{client.install}</code>
        </p>
      )}
    </>
  );
}
