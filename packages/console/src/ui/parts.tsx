/** Small parts that all pages use. */

import { signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Loaded } from '../lib/data.ts';
import { PROTOCOLS } from '../lib/format.ts';

/** A message that screen readers announce, such as "copied". */
export const announcement = signal('');

/** Puts text on the clipboard. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announcement.value = 'Copied.';
  } catch {
    announcement.value = 'The browser does not allow copying here; select the text instead.';
  }
}

/** A button that copies text. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" class="small" onClick={() => void copy()}>
      {isCopied ? 'Copied' : label}
    </button>
  );
}

/** Text in a box with a copy button. */
export function Snippet({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} />
    </div>
  );
}

/** The letter of a protocol in its colour. */
export function ProtocolBadge({ id }: { id: string | null | undefined }): JSX.Element {
  const protocol = id ? PROTOCOLS[id] : undefined;
  const title = protocol?.title ?? id ?? 'unknown protocol';
  return (
    <abbr class={`protocol p-${protocol?.letter ?? 'none'}`} title={title}>
      {protocol?.letter ?? '?'}
    </abbr>
  );
}

/** What became of an exchange, by text and colour. */
export function Status({ outcome, status }: { outcome: string; status: number | null }): JSX.Element {
  const isLive = outcome === 'live';
  const text = isLive ? 'live' : `${status ?? '–'}`;
  const suffix = outcome === 'aborted' ? ' ✕' : outcome === 'error' && status !== null && status < 400 ? ' !' : '';
  return (
    <span class={`status s-${outcome}`} title={TITLES[outcome] ?? outcome}>
      {text + suffix}
    </span>
  );
}

const TITLES: Readonly<Record<string, string>> = {
  live: 'in flight',
  ok: 'complete',
  error: 'failed',
  aborted: 'the client left',
};

/** Shows a resource when it is there, and what happened when it is not. */
export function Await<Value>({
  state,
  children,
}: {
  state: Loaded<Value>;
  children: (value: Value) => ComponentChildren;
}): JSX.Element {
  if (state.is === 'ready') return <>{children(state.value)}</>;
  if (state.is === 'loading') return <p class="muted">Loading…</p>;
  return <Failure message={state.message} requestId={state.requestId} />;
}

/** An error in the words of the gateway. */
export function Failure({ message, requestId }: { message: string; requestId?: string | undefined }): JSX.Element {
  return (
    <p class="failure" role="alert">
      {message}
      {requestId === undefined ? null : <span class="muted"> (request {requestId})</span>}
    </p>
  );
}

/** A part of a page with a heading. */
export function Section({
  title,
  children,
  aside,
}: {
  title: string;
  children: ComponentChildren;
  aside?: ComponentChildren;
}): JSX.Element {
  return (
    <section>
      <header class="section">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A region that scrolls when its content is wider or taller than the page. */
export function ScrollRegion({
  label,
  children,
  isTall = false,
}: {
  label: string;
  children: ComponentChildren;
  isTall?: boolean;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div class={isTall ? 'scroll-x tall' : 'scroll-x'} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
