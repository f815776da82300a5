/** Starts the console. */

import { render } from 'preact';
import { App } from './app.tsx';
import { startKeys } from './lib/keys.ts';
import { startTheme } from './lib/preferences.ts';
import { startRouter } from './lib/router.ts';
import { startSession } from './lib/session.ts';

startTheme();
// First, because it removes the token from the address.
void startSession();
startRouter();
startKeys();
render(<App />, document.getElementById('app') ?? document.body);
