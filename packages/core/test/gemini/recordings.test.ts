import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { isObject, type JsonObject, parseJson } from '../../src/json/json.ts';
import { run } from './run.ts';

const RECORDINGS = readManifest().filter(({ protocol }) => protocol === 'gemini');

/** Not answers of generateContent, or a body that its own source cut short. */
const ODD: Record<string, string> = {
  'gemini/google-03c2ad7a.json': 'embeddings',
  'gemini/google-vertex-d2b3fed2.json': 'a cached content',
  'gemini/google-13e74bde.json': 'a mock without finishReason',
};

/** Read without our framing: whole bodies are JSON, and Google writes one `data:` line an event. */
function payloadsOf(file: string, body: string): JsonObject[] {
  if (file.endsWith('.json')) return [parseJson(body)].flat().filter(isObject);
  const lines = body.split(/\r?\n/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => parseJson(line.slice(5))).filter(isObject);
}

// The wire as Google documents it, read without care: these bodies are trusted.
interface Trusted {
  usageMetadata?: JsonObject;
  candidates?: {
    content?: { parts?: { text?: string; thought?: boolean; functionCall?: { name?: string }; functionResponse?: object }[] };
  }[];
}

const partsOf = (payloads: Trusted[]) => payloads.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);

describe('recordings', () => {
  test.each(RECORDINGS)('$file', ({ file, features, status }) => {
    const bytes = readRecording(file);
    const result = run(bytes);
    expect(run(bytes, 1000).events).toEqual(result.events);
    if (features.includes('error') || status >= 400) {
      expect(result.error?.http_status).toBe(status);
      return;
    }
    const payloads: Trusted[] = payloadsOf(file, bytes.toString('utf8'));
    const parts = partsOf(payloads);
    const textOf = (isThought: boolean): string =>
      parts
        .filter(({ thought = false }) => thought === isThought)
        .map(({ text = '' }) => text)
        .join('');
    expect(result.text).toBe(textOf(false));
    expect(result.reasoning).toBe(textOf(true));
    if (ODD[file]) return;
    expect(result.complete).toBe(true);
    expect(result.error).toBeNull();
    const calls = parts.filter(({ functionCall }) => functionCall?.name !== undefined);
    const answers = parts.filter(({ functionResponse }) => functionResponse);
    expect(result.calls.map(({ name }) => name)).toEqual(
      calls.slice(answers.length).map(({ functionCall }) => functionCall?.name),
    );
    for (const call of result.calls) expect(isObject(parseJson(call.arguments)), call.arguments).toBe(true);
    if (features.includes('usage')) {
      expect(result.message.usage?.extensions?.gemini).toEqual(
        payloads.findLast(({ usageMetadata }) => usageMetadata)?.usageMetadata,
      );
    }
  });

  test('violations: only those that Google is known for', () => {
    const met = new Set(
      RECORDINGS.filter(({ file, stream }) => stream && !ODD[file]).flatMap(({ file }) => run(readRecording(file)).rules),
    );
    expect([...met].toSorted()).toEqual(['gemini/parts-after-finish']);
  });
});
