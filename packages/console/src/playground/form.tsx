/** The form of the playground. */

import type { JSX } from 'preact';
import { PROTOCOLS } from '../lib/format.ts';
import { announcement } from '../ui/parts.tsx';
import { KeyField, ModelField, type Sender } from '../ui/sender.tsx';
import { type Draft, type DraftImage, type DraftMessage, MAX_IMAGE_BYTES, MAX_IMAGES } from './draft.ts';

interface FormProps {
  readonly draft: Draft;
  readonly sender: Sender;
  /** Gets the form as it is then: an image is added when it was read, and more may have been typed. */
  readonly onChange: (change: (draft: Draft) => Draft) => void;
}

/** Everything but the raw request. */
export function DraftForm({ draft, sender, onChange }: FormProps): JSX.Element {
  const set = (change: Partial<Draft>): void => onChange((now) => ({ ...now, ...change }));
  const setMessage = (index: number, change: MessageChange): void =>
    onChange((now) => ({ ...now, messages: now.messages.map((message, at) => (at === index ? change(message) : message)) }));
  const add = (): void => {
    const role = draft.messages.at(-1)?.role === 'user' ? 'assistant' : 'user';
    set({ messages: [...draft.messages, { role, text: '', images: [] }] });
  };
  return (
    <>
      <p class="row">
        <label>
          protocol{' '}
          <select value={draft.protocol} onChange={(event) => set({ protocol: event.currentTarget.value })}>
            {Object.entries(PROTOCOLS).map(([id, { title }]) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <ModelField sender={sender} model={draft.model} onModel={(model) => set({ model })} />
        <KeyField sender={sender} chosen={draft.key} onChoose={(key) => set({ key })} />
      </p>
      <TextArea label="system" value={draft.system} onInput={(system) => set({ system })} />
      {draft.messages.map((message, index) => (
        <MessageField
          key={index}
          message={message}
          onChange={(change) => setMessage(index, change)}
          onRemove={() => set({ messages: draft.messages.filter((_, at) => at !== index) })}
        />
      ))}
      <p class="row">
        <button type="button" class="small" onClick={add}>
          add a message
        </button>
      </p>
      <details>
        <summary>tools and parameters</summary>
        <TextArea
          label="tools (JSON)"
          value={draft.tools}
          placeholder='[{"name": "get_weather", "description": "…", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]'
          onInput={(tools) => set({ tools })}
        />
        <p class="row">
          <NumberField label="temperature" value={draft.temperature} onInput={(temperature) => set({ temperature })} />
          <NumberField label="max tokens" value={draft.maxTokens} onInput={(maxTokens) => set({ maxTokens })} />
          <label>
            <input
              type="checkbox"
              checked={draft.isStream}
              onChange={(event) => set({ isStream: event.currentTarget.checked })}
            />{' '}
            stream
          </label>
        </p>
      </details>
    </>
  );
}

interface TextAreaProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onInput: (text: string) => void;
}

const TextArea = ({ label, value, placeholder = '', onInput }: TextAreaProps): JSX.Element => (
  <label class="editor">
    <span class="muted">{label}</span>
    <textarea rows={3} value={value} placeholder={placeholder} onInput={(event) => onInput(event.currentTarget.value)} />
  </label>
);

const NumberField = ({ label, value, onInput }: TextAreaProps): JSX.Element => (
  <label>
    {label}{' '}
    <input type="text" inputMode="decimal" size={6} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
  </label>
);

type MessageChange = (message: DraftMessage) => DraftMessage;

interface MessageFieldProps {
  readonly message: DraftMessage;
  readonly onChange: (change: MessageChange) => void;
  readonly onRemove: () => void;
}

function MessageField({ message, onChange, onRemove }: MessageFieldProps): JSX.Element {
  const { role, text, images, calls = [], call } = message;
  const set = (change: Partial<DraftMessage>): void => onChange((now) => ({ ...now, ...change }));
  const attach = async (files: FileList | null): Promise<void> => {
    try {
      const added = await Promise.all([...(files ?? [])].slice(0, MAX_IMAGES - images.length).map(readImage));
      onChange((now) => ({ ...now, images: [...now.images, ...added].slice(0, MAX_IMAGES) }));
    } catch (error) {
      announcement.value = String(error instanceof Error ? error.message : error);
    }
  };
  return (
    <div class="message">
      <TextArea label={call ? `result of ${call.name}` : role} value={text} onInput={(next) => set({ text: next })} />
      <p class="row">
        {!call && calls.length === 0 && (
          <button type="button" class="small" onClick={() => set({ role: role === 'user' ? 'assistant' : 'user' })}>
            switch the role
          </button>
        )}
        {calls.map(({ id, name, arguments: args }) => (
          <code key={id} class="cut">
            {name}({args.slice(0, 200)})
          </code>
        ))}
        {role === 'user' && (
          <label class="row">
            <span class="muted">image</span>
            <input
              type="file"
              accept="image/*"
              multiple
              onChange={(event) => {
                void attach(event.currentTarget.files);
                event.currentTarget.value = '';
              }}
            />
          </label>
        )}
        {images.map((image, index) => (
          <button
            key={index}
            type="button"
            class="small"
            onClick={() => set({ images: images.filter((_, at) => at !== index) })}
            aria-label={`Remove the image ${image.name}`}
          >
            {image.name.slice(0, 40)} ✕
          </button>
        ))}
        <span class="grow" />
        <button type="button" class="small" onClick={onRemove}>
          remove
        </button>
      </p>
    </div>
  );
}

function readImage(file: File): Promise<DraftImage> {
  if (file.size > MAX_IMAGE_BYTES)
    return Promise.reject(new Error(`The image ${file.name} has more than ${MAX_IMAGE_BYTES / 1e6} MB.`));
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name, url: String(reader.result) });
    reader.onerror = () => reject(new Error(`The image ${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}
