/** The pages of the console. A page is a file in `pages/` and a line here; it is loaded when it is first shown. */

import type { ComponentType } from 'preact';

/** A page. */
export interface Page {
  /** Its part of the address. */
  readonly id: string;
  readonly title: string;
  readonly load: () => Promise<{ readonly default: ComponentType }>;
}

/** All pages, in the order of the navigation. The first is shown when the address names none. */
export const PAGES: readonly Page[] = [
  { id: '', title: 'Home', load: () => import('./pages/home.tsx') },
  { id: 'exchanges', title: 'Exchanges', load: () => import('./pages/exchanges.tsx') },
  { id: 'usage', title: 'Usage', load: () => import('./pages/usage.tsx') },
  { id: 'keys', title: 'Keys', load: () => import('./pages/keys.tsx') },
  { id: 'inspect', title: 'Inspector', load: () => import('./pages/inspect.tsx') },
  { id: 'playground', title: 'Playground', load: () => import('./pages/playground.tsx') },
  { id: 'models', title: 'Models', load: () => import('./pages/models.tsx') },
  { id: 'config', title: 'Config', load: () => import('./pages/config.tsx') },
  { id: 'audit', title: 'Audit', load: () => import('./pages/audit.tsx') },
];
