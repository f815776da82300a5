/** Inspects a file of this machine. It never leaves the browser. */

import { readFiles } from '@gateway/capture/inspect/input';
import { InspectError, type InspectInput } from '@gateway/capture/inspect/inspect';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Inspector } from '../inspector/view.tsx';
import { Failure } from '../ui/parts.tsx';

type Chosen = { readonly input: InspectInput } | { readonly message: string };

/** More cannot be shown in a page. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The page of the inspector. */
export default function Inspect(): JSX.Element {
  const [chosen, setChosen] = useState<Chosen>();
  const [isOver, setOver] = useState(false);
  const open = async (files: readonly File[]): Promise<void> => setChosen(await read(files));
  return (
    <div class="pad">
      <h1>Inspector</h1>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: dropping is for the mouse; the button beside it is for all */}
      <div
        class={isOver ? 'drop is-over' : 'drop'}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void open([...(event.dataTransfer?.files ?? [])]);
        }}
      >
        <label>
          Drop a recorded stream (<code>.sse</code>), a capture, a case or the files of a tape here, or choose them:{' '}
          <input type="file" multiple onChange={(event) => void open([...(event.currentTarget.files ?? [])])} />
        </label>
        <p class="muted">The file stays in this browser: nothing is sent.</p>
      </div>
      {chosen && 'message' in chosen && <Failure message={chosen.message} />}
      {chosen && 'input' in chosen && (
        <>
          <h2>{chosen.input.name}</h2>
          <Inspector key={chosen.input.name} input={chosen.input} />
        </>
      )}
    </div>
  );
}

async function read(files: readonly File[]): Promise<Chosen> {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size > MAX_BYTES) return { message: `the files have ${size} bytes; ${MAX_BYTES} at most can be inspected` };
  try {
    const read = files.map(async (file) => ({
      name: file.webkitRelativePath || file.name,
      bytes: new Uint8Array(await file.arrayBuffer()),
    }));
    return { input: readFiles(await Promise.all(read)) };
  } catch (error) {
    return { message: error instanceof InspectError ? error.message : `the file cannot be read: ${String(error)}` };
  }
}
