/** JSON as a tree whose branches are built when they are opened, so that a large body costs nothing. */

import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { cutText } from '../lib/format.ts';

/** Members that are shown at once. */
const MAX_MEMBERS = 100;

const MAX_TEXT = 2000;

/** Text that may be JSON: as a tree, or as it is. */
export function JsonOrText({ text, isOpen = true }: { text: string; isOpen?: boolean }): JSX.Element {
  const parsed = useMemo(() => parse(text), [text]);
  return parsed === undefined ? <LongText text={text} /> : <JsonTree value={parsed.value} depth={isOpen ? 2 : 0} />;
}

function parse(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { value } : undefined;
  } catch {
    return undefined;
  }
}

/** Text of any length; what is long is cut until it is opened. */
export function LongText({ text, max = 4000 }: { text: string; max?: number }): JSX.Element {
  const [limit, setLimit] = useState(max);
  const { shown, rest } = cutText(text, limit);
  return (
    <>
      <pre class="text">{shown}</pre>
      {rest > 0 && (
        <button type="button" class="small" onClick={() => setLimit(limit + STEP)}>
          show more ({rest.toLocaleString('en')} characters)
        </button>
      )}
    </>
  );
}

const STEP = 200_000;

/** A value. Branches are open down to `depth`. */
export function JsonTree({ value, name, depth }: { value: unknown; name?: string; depth: number }): JSX.Element {
  const label = name === undefined ? null : <span class="json-name">{name}: </span>;
  if (typeof value !== 'object' || value === null)
    return (
      <div class="json-leaf">
        {label}
        <Leaf value={value} />
      </div>
    );
  return <Branch value={value} label={label} depth={depth} />;
}

function Leaf({ value }: { value: unknown }): JSX.Element {
  const [max, setMax] = useState(MAX_TEXT);
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  const { shown, rest } = cutText(text, max);
  return (
    <>
      <span class={`json-${value === null ? 'null' : typeof value}`}>{shown}</span>
      {rest > 0 && (
        <button type="button" class="small" onClick={() => setMax(max + STEP)}>
          +{rest.toLocaleString('en')}
        </button>
      )}
    </>
  );
}

function Branch({ value, label, depth }: { value: object; label: JSX.Element | null; depth: number }): JSX.Element {
  const [isOpen, setOpen] = useState(depth > 0);
  const [max, setMax] = useState(MAX_MEMBERS);
  const isList = Array.isArray(value);
  const members = isOpen ? Object.entries(value) : [];
  const size = isList ? value.length : Object.keys(value).length;
  return (
    <details class="tree" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span class="muted">{isList ? `[${size}]` : `{${size}}`}</span>
      </summary>
      {members.slice(0, max).map(([key, member]) => (
        <JsonTree key={key} name={key} value={member} depth={depth - 1} />
      ))}
      {members.length > max && (
        <button type="button" class="small" onClick={() => setMax(max + 10 * MAX_MEMBERS)}>
          {members.length - max} more
        </button>
      )}
    </details>
  );
}
