/** Keys of the keyboard: pages say what theirs do, and the help lists them. */

import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';

/** What a key does. */
interface KeyAction {
  readonly about: string;
  readonly run: (event: KeyboardEvent) => void;
}

/** By the key's name in `KeyboardEvent.key`. */
export type KeyMap = Readonly<Record<string, KeyAction>>;

/** The keys in force; the last map that has a key decides. */
export const keyMaps = signal<readonly KeyMap[]>([]);

/** Keys of a component, while it is shown: from the moment it is there, so that a key pressed at once is not lost. */
export function useKeys(map: KeyMap, inputs: readonly unknown[]): void {
  useLayoutEffect(() => {
    keyMaps.value = [...keyMaps.value, map];
    return () => {
      keyMaps.value = keyMaps.value.filter((one) => one !== map);
    };
  }, inputs);
}

/** Follows the keyboard. */
export const startKeys = (): void => addEventListener('keydown', handleKey);

function handleKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTaken(event)) return;
  const action = keyMaps.value.findLast((map) => Object.hasOwn(map, event.key))?.[event.key];
  if (!action) return;
  event.preventDefault();
  action.run(event);
}

/** Whether the focused element uses the key itself. */
function isTaken({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof Element)) return false;
  if (target.closest('dialog[open]')) return true;
  if (target.matches('input:not([type=checkbox]), textarea, select')) return true;
  const isPress = key === 'Enter' || key === ' ';
  if (isPress && target.matches('button, a, summary, input')) return true;
  // A region that scrolls is only as wide as its text.
  return (
    key.startsWith('Arrow') && target.matches(isVertical(key) ? '[role=tab], [role=tabpanel], [role=region], pre' : '[role=tab]')
  );
}

const isVertical = (key: string): boolean => key === 'ArrowUp' || key === 'ArrowDown';
