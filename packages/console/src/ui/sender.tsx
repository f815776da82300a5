/** The model and the key of a request that the console sends. */

import type { AdminResponses } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useId } from 'preact/hooks';
import { call, type Loaded, useLoaded } from '../lib/data.ts';

/** The keys and models that there are. */
export type Sender = AdminResponses['GET requests'];

/** Loads the keys and models. */
export const useSender = (): Loaded<Sender> => useLoaded((signal) => call('GET requests', { signal }), []);

/** A field with the names of models; any other name can be typed. */
export function ModelField({
  sender,
  model,
  onModel,
}: {
  sender: Sender;
  model: string;
  onModel: (model: string) => void;
}): JSX.Element {
  const list = useId();
  return (
    <label>
      model{' '}
      <input
        type="text"
        list={list}
        value={model}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onModel(event.currentTarget.value)}
      />
      <datalist id={list}>
        {[...new Set([sender.model, ...sender.models])].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

/** The choice of the client key; nothing on a gateway without keys. */
export function KeyField({
  sender: { needs_key, keys },
  chosen,
  onChoose,
}: {
  sender: Sender;
  chosen: string;
  onChoose: (id: string) => void;
}): JSX.Element | null {
  if (!needs_key) return null;
  return (
    <label>
      key{' '}
      <select value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">choose…</option>
        {keys.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
