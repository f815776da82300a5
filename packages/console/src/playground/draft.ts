/** What the form of the playground has, and the request that it stands for. */

/** A message of the form. `tool`: the result of a call. */
export interface DraftMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly text: string;
  readonly images: readonly DraftImage[];
  /** Calls of the model, for messages of the assistant. */
  readonly calls?: readonly DraftCall[];
  /** The call that a result belongs to. */
  readonly call?: DraftCall;
}

/** A call of a tool. */
interface DraftCall {
  readonly id: string;
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

/** An image as a data URL. */
export interface DraftImage {
  readonly name: string;
  readonly url: string;
}

/** The form. Numbers are text, as they are typed; empty ones are not sent. */
export interface Draft {
  readonly protocol: string;
  readonly model: string;
  readonly key: string;
  readonly system: string;
  readonly messages: readonly DraftMessage[];
  /** JSON: a list of `{name, description, parameters}`. */
  readonly tools: string;
  readonly temperature: string;
  readonly maxTokens: string;
  readonly isStream: boolean;
}

/** An empty form. */
export const EMPTY_DRAFT: Draft = {
  protocol: 'openai-chat',
  model: '',
  key: '',
  system: '',
  messages: [{ role: 'user', text: '', images: [] }],
  tools: '',
  temperature: '',
  maxTokens: '',
  isStream: true,
};

/** The path of requests that `buildChat` builds. */
export const CHAT_PATH = '/v1/chat/completions';

/** Bytes of one image. */
export const MAX_IMAGE_BYTES = 4_000_000;

/** Images of one message. */
export const MAX_IMAGES = 8;

/** Characters of all images of a request: 15 MB in base64. */
const MAX_IMAGE_CHARACTERS = 20_000_000;

/** A field that is wrong. */
export class DraftError extends Error {}

/** The request in the form of OpenAI Chat, from which the gateway makes that of the chosen protocol. */
export function buildChat(draft: Draft): Record<string, unknown> {
  const { model, system, messages, isStream } = draft;
  if (model.trim() === '') throw new DraftError('Choose a model.');
  const sent = messages.filter((message) => !isEmpty(message));
  if (!sent.some(({ role }) => role === 'user')) throw new DraftError('Write a user message.');
  const images = sent.flatMap((message) => message.images);
  if (images.reduce((sum, { url }) => sum + url.length, 0) > MAX_IMAGE_CHARACTERS)
    throw new DraftError('The images have more than 15 MB together; remove some.');
  const tools = readTools(draft.tools);
  const temperature = readNumber('Temperature', draft.temperature);
  const max_tokens = readNumber('The token limit', draft.maxTokens);
  return {
    model: model.trim(),
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...sent.map(buildMessage)],
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(temperature !== undefined && { temperature }),
    ...(max_tokens !== undefined && { max_tokens }),
    ...(isStream && { stream: true, stream_options: { include_usage: true } }),
  };
}

/** Whether a message has nothing to send. A result may be empty, but must follow its call. */
const isEmpty = ({ role, text, images, calls = [] }: DraftMessage): boolean =>
  role !== 'tool' && text === '' && images.length + calls.length === 0;

function buildMessage({ role, text, images, calls = [], call }: DraftMessage): object {
  if (call) return { role, tool_call_id: call.id, content: text };
  if (calls.length > 0) {
    const tool_calls = calls.map(({ id, name, arguments: args }) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    }));
    return { role, content: text === '' ? null : text, tool_calls };
  }
  if (images.length === 0) return { role, content: text };
  const parts = images.map(({ url }) => ({ type: 'image_url', image_url: { url } }));
  return { role, content: [...(text === '' ? [] : [{ type: 'text', text }]), ...parts] };
}

function readNumber(name: string, text: string): number | undefined {
  if (text.trim() === '') return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new DraftError(`${name} must be a number.`);
  return value;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Tools as functions. Those in the form of an SDK, with `function` or `input_schema`, are understood, too. */
function readTools(text: string): Record<string, unknown>[] {
  if (text.trim() === '') return [];
  const problem = 'Tools must be a JSON list such as [{"name": "get_weather", "parameters": {"type": "object"}}].';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new DraftError(problem);
  }
  if (!Array.isArray(value)) throw new DraftError(problem);
  return value.map((tool: unknown) => {
    const found = isObject(tool) && isObject(tool['function']) ? tool['function'] : tool;
    if (!isObject(found) || typeof found['name'] !== 'string') throw new DraftError(problem);
    const { name, description, parameters, input_schema } = found;
    return {
      name,
      ...(description !== undefined && { description }),
      parameters: parameters ?? input_schema ?? { type: 'object' },
    };
  });
}

/** A part of a response. */
interface ResponsePart {
  readonly kind: string;
  readonly text: string;
  readonly name?: string | undefined;
  readonly call_id?: string | undefined;
}

/** The form with the response added to its messages, and room for what follows: results of its calls, or text of the user. */
export function continueDraft(draft: Draft, response: readonly ResponsePart[]): Draft {
  const text = response.filter(({ kind }) => kind === 'text').map((part) => part.text);
  const calls = response
    .filter(({ kind }) => kind === 'tool_use')
    .map((part): DraftCall => ({ id: part.call_id ?? '', name: part.name ?? '', arguments: part.text }));
  const answer: DraftMessage = { role: 'assistant', text: text.join('\n'), images: [], ...(calls.length > 0 && { calls }) };
  const results = calls.map((call): DraftMessage => ({ role: 'tool', text: '', images: [], call }));
  const next: DraftMessage[] = results.length > 0 ? results : [{ role: 'user', text: '', images: [] }];
  return { ...draft, messages: [...draft.messages.filter((message) => !isEmpty(message)), answer, ...next] };
}
