/** What this browser remembers: the theme and the columns. */

import { effect, signal } from '@preact/signals';

/** The theme; `auto` is that of the system. */
export type Theme = 'auto' | 'light' | 'dark';

const THEMES: readonly Theme[] = ['auto', 'light', 'dark'];

/** The chosen theme. */
export const theme = signal<Theme>('auto');

/** Reads the theme and applies it, now and whenever it changes. */
export function startTheme(): void {
  const stored = recall('theme');
  theme.value = THEMES.find((one) => one === stored) ?? 'auto';
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value;
    remember('theme', theme.value);
  });
}

/** The next theme in the order auto, light, dark. */
export function switchTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'auto';
}

/** Reads a setting of this browser. */
export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(`sluice.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a setting in this browser, if it lets us. */
export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`sluice.${name}`, value);
  } catch {
    // Browsers without storage forget it.
  }
}
