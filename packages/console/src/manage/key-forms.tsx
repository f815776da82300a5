/** Forms of client keys: create, edit, rotate, revoke, and the secret that is shown once. */

import type { AdminResponses, Key } from '@gateway/admin/types';
import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../lib/api.ts';
import { call } from '../lib/data.ts';
import { formatDateTime } from '../lib/format.ts';
import { describeError } from '../lib/session.ts';
import { Failure, Snippet } from '../ui/parts.tsx';

/** A key with its secret, as the gateway returns it once. */
export type Issued = AdminResponses['POST keys'];

/** The settings of a key, in the grammar of `sluice keys create`. */
const FIELDS = [
  { name: 'models', label: 'Models', hint: 'gpt-*, claude-*; empty for all', isList: true },
  { name: 'budget', label: 'Budget', hint: '20usd/month, 5usd/day', isList: true },
  { name: 'rpm', label: 'Requests per minute', hint: '60', isList: false },
  { name: 'tpm', label: 'Tokens per minute', hint: '100k', isList: false },
  { name: 'concurrency', label: 'Requests at the same time', hint: '8', isList: false },
  { name: 'expires', label: 'Expires', hint: '90d, 2027-01-31; empty for never', isList: false },
  { name: 'ip', label: 'Addresses', hint: '10.0.0.0/8; empty for all', isList: true },
  { name: 'tags', label: 'Tags', hint: 'team=a', isList: true },
] as const satisfies readonly { name: keyof Key; label: string; hint: string; isList: boolean }[];

type FieldName = (typeof FIELDS)[number]['name'] | 'name';

type Texts = Readonly<Record<FieldName, string>>;

const EMPTY: Texts = { name: '', models: '', budget: '', rpm: '', tpm: '', concurrency: '', expires: '', ip: '', tags: '' };

/** The settings of a key as text, so that they can be edited. */
const writeTexts = (key: Key): Texts => {
  const fields = FIELDS.map(({ name }) => {
    const value = key[name];
    return [name, Array.isArray(value) ? value.join(', ') : String(value ?? '')];
  });
  return { ...EMPTY, name: key.name, ...Object.fromEntries(fields) };
};

/** The body of a request: settings that differ from `before`. An empty one is removed. */
function buildBody(texts: Texts, before: Texts): Record<string, unknown> {
  const changed = FIELDS.filter(({ name }) => texts[name].trim() !== before[name].trim());
  const settings = changed.map(({ name, isList }) => {
    const text = texts[name].trim();
    if (text === '') return [name, null];
    return [name, isList ? splitList(text) : text];
  });
  return { ...(texts.name !== before.name && { name: texts.name.trim() }), ...Object.fromEntries(settings) };
}

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

interface FormProps<Result> {
  readonly onDone: (result: Result) => void;
  readonly onCancel: () => void;
}

interface KeyFormProps<Result> extends FormProps<Result> {
  readonly record: Key;
}

/** A form that sends one request, and shows its error in the words of the gateway. */
function RequestForm<Result>({
  title,
  button,
  send,
  onDone,
  onCancel,
  children,
  isReady = true,
}: FormProps<Result> & {
  title: string;
  button: string;
  send: () => Promise<Result>;
  children: (errorOf: (field: string) => string | undefined) => ComponentChildren;
  isReady?: boolean;
}): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector<HTMLElement>('input, button')?.focus(), []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (isBusy || !isReady) return;
    setBusy(true);
    try {
      onDone(await send());
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  const close = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') onCancel();
  };
  const fields = error instanceof ApiError ? (error.problem.errors ?? []) : [];
  const requestId = error instanceof ApiError ? error.problem.request_id : undefined;
  return (
    <form ref={form} class="box" aria-label={title} onSubmit={(event) => void submit(event)} onKeyDown={close}>
      <h2>{title}</h2>
      {children((name) => fields.find(({ field }) => field === name)?.detail)}
      {error !== undefined && <Failure message={describeError(error)} requestId={requestId} />}
      <p class="row">
        <button type="submit" disabled={isBusy || !isReady}>
          {button}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </p>
    </form>
  );
}

interface FieldProps {
  id: string;
  label: string;
  hint: string;
  value: string;
  error: string | undefined;
  onInput: (text: string) => void;
  isRequired?: boolean;
}

function Field({ id, label, hint, value, error, onInput, isRequired = false }: FieldProps): JSX.Element {
  return (
    <div class="field">
      <label for={`key-${id}`}>{label}</label>
      <input
        id={`key-${id}`}
        value={value}
        required={isRequired}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={error !== undefined}
        aria-describedby={`key-${id}-hint`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <span id={`key-${id}-hint`} class={error === undefined ? 'muted' : 'failure'}>
        {error ?? hint}
      </span>
    </div>
  );
}

/** The name and all settings. */
function KeyFields({
  texts,
  onTexts,
  errorOf,
}: {
  texts: Texts;
  onTexts: (texts: Texts) => void;
  errorOf: (field: string) => string | undefined;
}): JSX.Element {
  const fields = [{ name: 'name', label: 'Name', hint: 'who or what uses the key' } as const, ...FIELDS];
  return (
    <div class="fields">
      {fields.map(({ name, label, hint }) => (
        <Field
          key={name}
          id={name}
          label={label}
          hint={hint}
          value={texts[name]}
          error={errorOf(name)}
          isRequired={name === 'name'}
          onInput={(text) => onTexts({ ...texts, [name]: text })}
        />
      ))}
    </div>
  );
}

/** Creates a key. */
export function CreateKey({ onDone, onCancel }: FormProps<Issued>): JSX.Element {
  const [texts, setTexts] = useState(EMPTY);
  const send = (): Promise<Issued> => call('POST keys', { body: { name: '', ...buildBody(texts, EMPTY) } });
  return (
    <RequestForm title="Create a key" button="Create" send={send} onDone={onDone} onCancel={onCancel}>
      {(errorOf) => <KeyFields texts={texts} onTexts={setTexts} errorOf={errorOf} />}
    </RequestForm>
  );
}

/** Changes the name and the settings of a key. */
export function EditKey({ record, onDone, onCancel }: KeyFormProps<Key>): JSX.Element {
  const [before] = useState(() => writeTexts(record));
  const [texts, setTexts] = useState(before);
  const send = (): Promise<Key> => call('PATCH keys/{id}', { id: record.id, body: buildBody(texts, before) });
  return (
    <RequestForm title={`Edit ${record.name}`} button="Save" send={send} onDone={onDone} onCancel={onCancel}>
      {(errorOf) => <KeyFields texts={texts} onTexts={setTexts} errorOf={errorOf} />}
    </RequestForm>
  );
}

/** Gives a key another secret. */
export function RotateKey({ record, onDone, onCancel }: KeyFormProps<Issued>): JSX.Element {
  const [overlap, setOverlap] = useState('24h');
  const send = (): Promise<Issued> => call('POST keys/{id}/rotate', { id: record.id, body: { overlap } });
  return (
    <RequestForm title={`Rotate ${record.name}`} button="Rotate" send={send} onDone={onDone} onCancel={onCancel}>
      {(errorOf) => (
        <>
          <p>The key gets another secret, which is shown once.</p>
          <Field
            id="overlap"
            label="The current secret stays valid for"
            hint="24h, 7d; 0 ends it at once"
            value={overlap}
            error={errorOf('overlap')}
            isRequired
            onInput={setOverlap}
          />
        </>
      )}
    </RequestForm>
  );
}

/** Revokes a key after its name was typed: it cannot be undone. */
export function RevokeKey({ record, onDone, onCancel }: KeyFormProps<Key>): JSX.Element {
  const [typed, setTyped] = useState('');
  const [endsRequests, setEndsRequests] = useState(false);
  const send = (): Promise<Key> => call('DELETE keys/{id}', { id: record.id, query: { now: endsRequests ? 'true' : undefined } });
  return (
    <RequestForm
      title={`Revoke ${record.name}`}
      button="Revoke the key"
      send={send}
      onDone={onDone}
      onCancel={onCancel}
      isReady={typed === record.name}
    >
      {() => (
        <>
          <p>Requests with this key are refused from now on. This cannot be undone.</p>
          <Field
            id="confirm"
            label="Type the name of the key"
            hint={record.name}
            value={typed}
            error={undefined}
            onInput={setTyped}
          />
          <label class="row">
            <input type="checkbox" checked={endsRequests} onChange={(event) => setEndsRequests(event.currentTarget.checked)} />
            also end its running requests
          </label>
        </>
      )}
    </RequestForm>
  );
}

/** A new secret. The page forgets it when the box is closed or the page is left. */
export function SecretOnce({ issued: { key, secret }, onClose }: { issued: Issued; onClose: () => void }): JSX.Element {
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => box.current?.querySelector('button')?.focus(), []);
  return (
    <section ref={box} class="box secret" aria-label="New secret">
      <h2>The secret of {key.name}</h2>
      <p>Copy it now: it is shown once, and the gateway does not keep it.</p>
      <Snippet label="Secret" text={secret} />
      {key.previous_valid_until !== null && <p>The previous secret is valid until {formatDateTime(key.previous_valid_until)}.</p>}
      <button type="button" onClick={onClose}>
        I have copied it
      </button>
    </section>
  );
}
