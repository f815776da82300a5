/** The configuration: every setting in force with its origin, a check of a pasted file, and the reloads. */

import type { AdminResponses, Setting } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { call, useLoaded } from '../lib/data.ts';
import { formatDateTime } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import { route, setParameters } from '../lib/router.ts';
import { describeError } from '../lib/session.ts';
import { Await, Failure, ScrollRegion, Section } from '../ui/parts.tsx';
import '../manage/manage.css';

type Validation = AdminResponses['POST config/validate'];

type Reload = AdminResponses['GET config/reloads']['reloads'][number];

const REFRESH_MS = 5000;

/** The page of the configuration. */
export default function Config(): JSX.Element {
  return (
    <div class="page">
      <header class="section">
        <h1>Configuration</h1>
      </header>
      <Effective />
      <Check />
      <Reloads />
    </div>
  );
}

const ORIGINS = {
  set: 'what is set',
  all: 'all',
  file: 'file',
  store: 'database',
  environment: 'environment',
  flag: 'command line',
  default: 'defaults',
};

function Effective(): JSX.Element {
  const { find = '', origin = 'set' } = route.value.parameters;
  const input = useRef<HTMLInputElement>(null);
  useKeys({ '/': { about: 'find a setting', run: () => input.current?.focus() } }, []);
  const load = async (signal: AbortSignal) => {
    const [config, { settings, omitted }] = await Promise.all([
      call('GET config', { signal }),
      call('GET config/settings', { signal }),
    ]);
    return { config, settings, omitted };
  };
  const state = useLoaded(load, []);
  const isShown = (setting: Setting): boolean =>
    (origin === 'all' || (origin === 'set' ? setting.origin !== 'default' : setting.origin === origin)) &&
    setting.path.toLowerCase().includes(find.toLowerCase());
  return (
    <Section title="In force">
      <div class="row controls">
        <label>
          Show{' '}
          <select value={origin} onChange={(event) => setParameters({ origin: event.currentTarget.value })}>
            {Object.entries(ORIGINS).map(([id, title]) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label>
          Find{' '}
          <input
            ref={input}
            type="search"
            value={find}
            placeholder="/ limits"
            spellcheck={false}
            onInput={(event) => setParameters({ find: event.currentTarget.value })}
          />
        </label>
      </div>
      <Await state={state}>
        {({ config, settings, omitted }) => (
          <>
            <p class="muted">
              File: {config.file ?? 'none; the environment and defaults decide'}. Secrets are never shown, only what they refer
              to.
            </p>
            {config.warnings.map((warning) => (
              <p key={warning} class="warning">
                {warning}
              </p>
            ))}
            <SettingTable settings={settings.filter(isShown)} total={settings.length} />
            {omitted > 0 && <p class="muted">{omitted} more settings are not listed.</p>}
          </>
        )}
      </Await>
    </Section>
  );
}

function SettingTable({ settings, total }: { settings: readonly Setting[]; total: number }): JSX.Element {
  if (settings.length === 0) return <p>None of {total} settings is shown; choose another origin or text.</p>;
  return (
    <ScrollRegion label="Settings" isTall>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">setting</th>
            <th scope="col">value</th>
            <th scope="col">origin</th>
          </tr>
        </thead>
        <tbody>
          {settings.map((setting) => (
            <tr key={setting.path}>
              <th scope="row" class="wrap mono">
                {setting.path}
              </th>
              <td class="wrap mono">{setting.value ?? <span class="muted">hidden</span>}</td>
              <td>{describeOrigin(setting)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

function describeOrigin({ origin, reference, line }: Setting): string {
  const from = reference === null ? '' : ` (${reference})`;
  switch (origin) {
    case 'file':
    case 'store':
    case 'environment':
      return `${origin}${line === null ? '' : `, line ${line}`}${from}`;
    case 'flag':
      return 'command line';
    case 'default':
      return 'default';
    default:
      return origin satisfies never;
  }
}

/** Checks a file before it is put in place. Nothing is changed, and nothing of the text is kept. */
function Check(): JSX.Element {
  const [text, setText] = useState('');
  const [result, setResult] = useState<Validation | { message: string }>();
  const [isBusy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const check = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      setResult(await call('POST config/validate', { body: { text } }));
    } catch (error) {
      setResult({ message: describeError(error) });
    }
    setBusy(false);
  };
  const show = (line: number): void => {
    const start =
      text
        .split('\n')
        .slice(0, line - 1)
        .join('\n').length + (line > 1 ? 1 : 0);
    area.current?.focus();
    area.current?.setSelectionRange(start, start + (text.split('\n')[line - 1]?.length ?? 0));
  };
  return (
    <Section title="Check a file">
      <form class="fields-wide" onSubmit={(event) => void check(event)}>
        <label for="config-text">
          Paste a configuration. It is checked as by “sluice config check”; variables and files are not read.
        </label>
        <textarea
          ref={area}
          id="config-text"
          rows={8}
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <p>
          <button type="submit" disabled={isBusy || text.trim() === ''}>
            Check
          </button>
        </p>
      </form>
      {result && 'message' in result && <Failure message={result.message} />}
      {result && 'valid' in result && <Verdict result={result} onLine={show} />}
    </Section>
  );
}

function Verdict({ result, onLine }: { result: Validation; onLine: (line: number) => void }): JSX.Element {
  const { valid, problems, omitted, unchecked, providers, models } = result;
  const found = [
    ...(providers.length > 0 ? [`providers: ${providers.join(', ')}`] : []),
    ...(models.length > 0 ? [`models: ${models.join(', ')}`] : []),
  ].join('; ');
  return (
    <div role="status">
      <p class={`status s-${valid ? 'ok' : 'error'}`}>{valid ? 'valid' : 'not valid'}</p>
      {valid && found !== '' && <p>{found}</p>}
      <ul class="plain-list">
        {problems.map(({ severity, path, line, column, message }) => (
          <li key={`${line} ${column} ${path} ${message}`} class={severity === 'error' ? 'failure' : 'warning'}>
            {line !== null && (
              <button type="button" class="small" onClick={() => onLine(line)}>
                line {line}, column {column}
              </button>
            )}{' '}
            {severity}: {path === '' ? '' : `${path}: `}
            {message}
          </li>
        ))}
      </ul>
      {omitted > 0 && <p class="muted">{omitted} more problems.</p>}
      {unchecked.length > 0 && <p class="muted">Not checked, because they refer to variables: {unchecked.join(', ')}.</p>}
    </div>
  );
}

function Reloads(): JSX.Element {
  const state = useLoaded((signal) => call('GET config/reloads', { signal }), [], { everyMs: REFRESH_MS });
  return (
    <Section title="Reloads since the start">
      <Await state={state}>
        {({ reloads }) => (
          <ul class="plain-list">
            {reloads.map((reload) => (
              <ReloadLine key={`${reload.at} ${reload.by} ${reload.reason}`} reload={reload} />
            ))}
          </ul>
        )}
      </Await>
    </Section>
  );
}

const CAUSES = {
  start: 'start of the gateway',
  file: 'changed file',
  signal: 'SIGHUP',
  store: 'new version in the database',
} as const satisfies Record<Reload['by'], string>;

const ReloadLine = ({ reload: { at, by, version, ok, reason, restart, warnings } }: { reload: Reload }): JSX.Element => (
  <li>
    <span class={`status s-${ok ? 'ok' : 'error'}`}>{ok ? 'in force' : 'rejected'}</span> {formatDateTime(at)}, {CAUSES[by]}
    {version !== null && ` (version ${version})`}
    {warnings > 0 && `, ${warnings} warning${warnings === 1 ? '' : 's'}`}
    {restart.length > 0 && <div class="warning">takes effect after a restart: {restart.join(', ')}</div>}
    {reason !== null && <pre class="failure">{reason}</pre>}
  </li>
);
