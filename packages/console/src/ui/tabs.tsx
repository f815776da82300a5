/** Tabs by the pattern of WAI-ARIA. */

import type { ComponentChildren, JSX } from 'preact';

/** A tab. */
export interface Tab {
  readonly id: string;
  readonly title: string;
}

/** A list of tabs, and the panel of the chosen one. */
export function Tabs({
  tabs,
  chosen,
  onChoose,
  children,
}: {
  tabs: readonly Tab[];
  chosen: string;
  onChoose: (id: string) => void;
  children: ComponentChildren;
}): JSX.Element {
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const index = tabs.findIndex(({ id }) => id === chosen);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <>
      <div role="tablist" class="tabs" aria-label="Views of the exchange" onKeyDown={move}>
        {tabs.map(({ id, title }) => (
          <button
            key={id}
            type="button"
            role="tab"
            id={`tab-${id}`}
            aria-selected={id === chosen}
            aria-controls="tab-panel"
            tabIndex={id === chosen ? 0 : -1}
            onClick={() => onChoose(id)}
          >
            {title}
          </button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <div role="tabpanel" id="tab-panel" class="panel" aria-labelledby={`tab-${chosen}`} tabIndex={0}>
        {children}
      </div>
    </>
  );
}
