/** The filter: text in the language of `sluice log`, with what is wrong in it. */

import { parseSearch } from '@gateway/store/filter';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useKeys } from '../lib/keys.ts';

/** How long the typing must rest. */
const TYPING_MS = 250;

interface FilterBarProps {
  filter: string;
  onFilter: (filter: string) => void;
}

/** The field of the filter. A filter with a mistake is marked, and not applied. */
export function FilterBar({ filter, onFilter }: FilterBarProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(filter);
  // A space that was typed stays: more text follows it.
  useLayoutEffect(() => setText((typed) => (typed.trim() === filter ? typed : filter)), [filter]);
  const { problems } = parseSearch(text, Date.now());
  useEffect(() => {
    if (text.trim() === filter || problems.length > 0) return;
    const timer = setTimeout(() => onFilter(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useKeys({ '/': { about: 'filter', run: () => input.current?.focus() } }, []);
  const leave = ({ key }: KeyboardEvent): void => {
    if (key === 'Escape') input.current?.blur();
    if (key === 'Enter' && problems.length === 0) onFilter(text.trim());
  };
  return (
    <div class="filter">
      <input
        ref={input}
        type="search"
        aria-label="Filter"
        aria-invalid={problems.length > 0}
        aria-describedby="filter-problems"
        placeholder="/ status:error model:gpt* key:alice >2s since:2h text"
        spellcheck={false}
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={leave}
      />
      {problems.length > 0 && (
        <ul class="filter-problems" id="filter-problems">
          {problems.map(({ start, end, message }) => (
            <li key={start}>
              <mark>{text.slice(start, end).slice(0, 80)}</mark> {message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
