import { ApiError as ApiError1, GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { ApiError as ApiError2, GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cutAfter, errorFrames } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from './http.ts';
import { providersAt } from './pairs.ts';
import { type Started, startGateway } from './start.ts';

// Errors in a Gemini stream, read by both majors of Google's SDK over a real socket.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { retries: 0 } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const SDKS = [
  { name: '@google/genai 1', GoogleGenAI: GoogleGenAI1, ApiError: ApiError1 },
  // Both have the same calls; their types are too different to be joined.
  { name: '@google/genai 2', GoogleGenAI: GoogleGenAI2 as unknown as typeof GoogleGenAI1, ApiError: ApiError2 },
];

const ERROR = { code: 'OVERLOADED', message: 'scripted failure', http_status: 503 } as const;
const BARE = '{"error":{"code":503,"message":"scripted failure","status":"UNAVAILABLE"}}\r\n';

/** A stream with some text, and then the error in one of its forms. */
const UPSTREAMS = [
  { name: 'an error event of OpenAI', model: 'mend-openai-chat/m', protocol: 'openai-chat' },
  { name: 'an error event of Anthropic', model: 'mend-anthropic-messages/m', protocol: 'anthropic-messages' },
  { name: 'an error event of Responses', model: 'mend-openai-responses/m', protocol: 'openai-responses' },
  { name: 'an error event of Gemini, repaired', model: 'mend-gemini/m', protocol: 'gemini', error: `data: ${BARE}\r\n` },
  { name: 'an error event of Gemini, passed on', model: 'pass-gemini/m', protocol: 'gemini', error: `data: ${BARE}\r\n` },
  { name: 'bare JSON of Gemini, repaired', model: 'mend-gemini/m', protocol: 'gemini', error: BARE },
  { name: 'bare JSON of Gemini, passed on', model: 'pass-gemini/m', protocol: 'gemini', error: BARE },
] as const;

/** How text, error and end are spread over packets. */
const TIMINGS: readonly { name: string; script: (text: string, error: string) => Script }[] = [
  {
    name: 'in one packet',
    script: (text, error) => [
      { send: Buffer.concat([streamHead(), chunk(text + error), LAST_CHUNK].map((part) => Buffer.from(part))) },
    ],
  },
  {
    name: 'in three packets',
    script: (text, error) => [
      { send: streamHead() },
      ...(text === '' ? [] : [{ send: chunk(text) }, { wait: 30 }]),
      { send: chunk(error) },
      { wait: 30 },
      { send: LAST_CHUNK },
    ],
  },
  {
    name: 'in seven-byte pieces',
    script: (text, error) => [{ send: streamHead() }, { split: chunk(text + error), size: 7 }, { send: LAST_CHUNK }],
  },
];

async function readAll(GoogleGenAI: typeof GoogleGenAI1, model: string): Promise<string> {
  const client = new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl: gateway.url } });
  let text = '';
  for await (const fragment of await client.models.generateContentStream({ model, contents: 'hi' })) text += fragment.text ?? '';
  return text;
}

describe.each(SDKS)('$name', ({ GoogleGenAI, ApiError }) => {
  describe.each(UPSTREAMS)('$name', ({ model, protocol, ...given }) => {
    const error = 'error' in given ? given.error : errorFrames(protocol, ERROR);

    test.each(TIMINGS)('after some text, $name, is an ApiError', async ({ script }) => {
      faultd.play(script(cutAfter(protocol, 'two').before.join(''), error));
      const failure = await readAll(GoogleGenAI, model).catch((cause: unknown) => cause);
      expect(failure).toBeInstanceOf(ApiError);
      expect(failure).toMatchObject({ status: 503, message: expect.stringContaining('scripted failure') });
    });

    test.each(TIMINGS)('in the first place, $name, is an ApiError', async ({ script }) => {
      faultd.play(script('', error));
      const failure = await readAll(GoogleGenAI, model).catch((cause: unknown) => cause);
      expect(failure).toBeInstanceOf(ApiError);
      expect(failure).toMatchObject({ status: 503 });
    });
  });

  test.each(UPSTREAMS)('a connection that $model loses in the middle is an ApiError', async ({ model, protocol }) => {
    faultd.play([
      { send: streamHead() },
      { send: chunk(cutAfter(protocol, 'two').before.join('')) },
      { wait: 30 },
      { reset: true },
    ]);
    const failure = await readAll(GoogleGenAI, model).catch((cause: unknown) => cause);
    expect(failure).toBeInstanceOf(ApiError);
  });
});
