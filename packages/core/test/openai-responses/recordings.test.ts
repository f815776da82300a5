import { describe, expect, test } from 'vitest';
import { type Recording, readManifest, readRecording } from '../../../../test/corpus.ts';
import { isObject, parseJson } from '../../src/json/json.ts';
import { openaiResponses } from '../../src/protocols/openai-responses/index.ts';
import { type Payload, rulesOf, runBytes } from './run.ts';

const recordings = readManifest().filter(({ protocol }) => protocol === 'openai-responses');
const isStream = ({ file }: Recording): boolean => file.endsWith('.sse');

/** An own, naive reading: every data line, and from it only what is asked. */
function payloadsOf(body: string): Payload[] {
  return body.split(/\r?\n/).flatMap((line) => {
    const value = line.startsWith('data:') ? parseJson(line.slice(5)) : undefined;
    return isObject(value) ? [value] : [];
  });
}

const list = (value: unknown): Payload[] => (Array.isArray(value) ? value.filter(isObject) : []);
const joined = (payloads: Payload[], type: string): string =>
  payloads.map((payload) => (payload['type'] === type ? String(payload['delta']) : '')).join('');
const textsOf = (items: Payload[], field: string, type: string, separator: string): string =>
  items
    .map((item) =>
      list(item[field])
        .flatMap((part) => (part['type'] === type ? [part['text']] : []))
        .join(separator),
    )
    .join('');

/** The arguments of an item that the client runs under a type of its own. */
function builtInText({ type, action, operation, arguments: args, execution, environment }: Payload): string | undefined {
  if (type === 'local_shell_call') return JSON.stringify(action);
  if (type === 'apply_patch_call') return JSON.stringify(operation);
  if (type === 'shell_call' && !(isObject(environment) && environment['type'] !== 'local')) return JSON.stringify(action);
  return type === 'tool_search_call' && execution === 'client' ? JSON.stringify(args) : undefined;
}

/** Where the deltas are not the whole text, the done items are. */
function expectedOf(recording: Recording, body: string): { text: string; thinking: string; calls: unknown[]; raws: unknown[] } {
  const payloads = isStream(recording) ? payloadsOf(body) : [];
  const whole = parseJson(body);
  const streamed = payloads.flatMap(({ type, item }) => (type === 'response.output_item.done' && isObject(item) ? [item] : []));
  const items = isStream(recording) ? streamed : list(isObject(whole) ? whole['output'] : undefined);
  const isCall = (item: Payload): boolean =>
    item['type'] === 'function_call' || item['type'] === 'custom_tool_call' || builtInText(item) !== undefined;
  const deltas = joined(payloads, 'response.output_text.delta');
  const text = textsOf(items, 'content', 'output_text', '');
  return {
    text: deltas.length < text.length ? text : deltas,
    thinking: textsOf(items, 'summary', 'summary_text', '\n\n') + textsOf(items, 'content', 'reasoning_text', ''),
    calls: items.filter(isCall).map((item) => {
      const builtIn = String(item['type']).replace(/_call$/, '');
      return [item['call_id'], item['name'] ?? builtIn, builtInText(item) ?? item['arguments'] ?? item['input']];
    }),
    raws: items.filter((item) => !isCall(item) && item['type'] !== 'message' && item['type'] !== 'reasoning'),
  };
}

/** Bodies that a client put together from a stream that had not ended. */
const UNFINISHED = /chatgpt-codex-(8d8fd637|ecc5ca74)\.json$/;

describe.each(recordings)('$file', (recording) => {
  const bytes = readRecording(recording.file);
  const result = runBytes(bytes);
  const { message, complete, error } = result;
  const isError = recording.features.includes('error');

  test('ends as listed in the manifest', () => {
    expect(error !== null).toBe(isError);
    if (!isError) expect(complete).toBe(!UNFINISHED.test(recording.file));
    if (recording.features.includes('truncated')) expect(message.stop_reason).toBe('max_tokens');
  });

  test('is read whole', () => {
    const { content } = message;
    const { text, thinking, calls, raws } = expectedOf(recording, bytes.toString('utf8'));
    expect(content.map((block) => (block.type === 'text' && !block.refusal ? block.text : '')).join('')).toBe(text);
    expect(content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('')).toBe(thinking);
    const found = content.filter((block) => block.type === 'tool_use');
    expect(found.map(({ id, name, input_raw }) => [id, name, input_raw])).toEqual(calls);
    for (const { kind, input_raw = '' } of found) if (kind !== 'custom') expect(parseJson(input_raw)).toBeTypeOf('object');
    expect(openaiResponses.extras(message)['blocks'] ?? []).toEqual(raws);
  });

  test('does not depend on how its bytes are split', () => {
    expect(runBytes(bytes, 997).events).toEqual(result.events);
  });
});

test('OpenAI and Azure conform: violations are found only where they are', () => {
  const met = new Map<string, Set<string>>();
  for (const { provider, file } of recordings.filter(isStream)) {
    for (const rule of rulesOf(runBytes(readRecording(file))).filter((id) => id.startsWith('responses/')))
      met.set(rule, (met.get(rule) ?? new Set()).add(provider));
  }
  expect(Object.fromEntries([...met].map(([rule, providers]) => [rule, [...providers].toSorted()]))).toEqual({
    'responses/deltas-missing': ['lmstudio'],
    // A fixture from which someone has cut deltas.
    'responses/done-longer': ['openai'],
    'responses/done-sentinel': ['openrouter'],
    'responses/event-line-missing': ['bedrock-mantle', 'openrouter'],
    'responses/item-id-rotates': ['github-copilot'],
    'responses/items-overlap': ['openrouter'],
    'responses/output-empty': ['chatgpt-codex'],
    'responses/unknown-event': ['bedrock-mantle'],
  });
});
