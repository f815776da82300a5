/** The page of `sluice inspect --html`: the inspector with the data that the page contains. */

import '../style.css';
import { parseInput } from '@gateway/capture/inspect/input';
import type { InspectInput } from '@gateway/capture/inspect/inspect';
import { type JSX, render } from 'preact';
import { startKeys } from '../lib/keys.ts';
import { switchTheme, theme } from '../lib/preferences.ts';
import { Failure } from '../ui/parts.tsx';
import { Inspector } from './view.tsx';

function Page({ input }: { input: InspectInput | string }): JSX.Element {
  return (
    <>
      <header class="bar">
        <strong class="brand">Sluice</strong>
        <span class="grow" />
        <button type="button" class="small" onClick={switchTheme}>
          theme: {theme.value}
        </button>
      </header>
      <main id="main" class="pad">
        <h1>{typeof input === 'string' ? 'Inspector' : input.name}</h1>
        {typeof input === 'string' ? <Failure message={input} /> : <Inspector input={input} />}
      </main>
    </>
  );
}

function read(): InspectInput | string {
  try {
    return parseInput(document.getElementById('data')?.textContent ?? '');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

startKeys();
theme.subscribe((value) => {
  document.documentElement.dataset['theme'] = value;
});
render(<Page input={read()} />, document.getElementById('app') ?? document.body);
