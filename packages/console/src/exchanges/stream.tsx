/** The stream of an exchange in the inspector, which is loaded when it is first shown. */

import type { JSX } from 'preact';
import { call, useLoaded } from '../lib/data.ts';
import { Await } from '../ui/parts.tsx';
import { NotCaptured } from './conversation.tsx';
import type { TabProps } from './detail.tsx';
import { save } from './export.ts';

/** The view of the stream. */
export function StreamTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { id, outcome } = exchange;
  const state = useLoaded(
    async (signal) => {
      const [capture, { CaptureInspector }] = await Promise.all([
        call('GET exchanges/{id}/tape', { id, signal }),
        import('../inspector/capture.tsx'),
      ]);
      return { capture, CaptureInspector };
    },
    [id, outcome],
  );
  if (outcome === 'live') return <p class="muted">In flight. The stream is shown when the exchange has ended.</p>;
  if (state.is === 'failed' && state.status === 404) return <NotCaptured />;
  return (
    <Await state={state}>
      {({ capture, CaptureInspector }) => (
        <CaptureInspector
          name={id}
          json={capture}
          onDownload={() => save(new Blob([JSON.stringify(capture)], { type: 'application/json' }), `${id}.json`)}
        />
      )}
    </Await>
  );
}
