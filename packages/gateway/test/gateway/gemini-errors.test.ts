import { ApiError as ApiError1, GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { ApiError as ApiError2, GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cutAfter, errorFrames } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from './http.ts';
import { providersAt } from './pairs.ts';
import { ask, type Started, startGateway } from './start.ts';

// Errors in a Gemini stream, read by both majors of Google's SDK over a real socket. The first one does not find Google's own form.

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
const OTHERS = [
  { name: 'an error event of OpenAI', model: 'mend-openai-chat/m', protocol: 'openai-chat' },
  { name: 'an error event of Anthropic', model: 'mend-anthropic-messages/m', protocol: 'anthropic-messages' },
  { name: 'an error event of Responses', model: 'mend-openai-responses/m', protocol: 'openai-responses' },
] as const;

const EVENT = `data: ${BARE}\r\n`;

/** What Google itself sends. `frames`: how often, and how it ends, after the gateway. */
const OWN = [
  { name: 'an error event of Gemini, repaired', model: 'mend-gemini/m', error: EVENT, frames: 1, last: /^data: \{"error"/ },
  { name: 'an error event of Gemini, passed on', model: 'pass-gemini/m', error: EVENT, frames: 1, last: /^data: \{"error"/ },
  { name: 'bare JSON of Gemini, repaired', model: 'mend-gemini/m', error: BARE, frames: 2, last: /^\{"error"/ },
  { name: 'bare JSON of Gemini, passed on', model: 'pass-gemini/m', error: BARE, frames: 1, last: /^\{"error"/ },
] as const;

const UPSTREAMS = [...OTHERS, ...OWN.map((own) => ({ ...own, protocol: 'gemini' as const }))];

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

async function readAll(GoogleGenAI: typeof GoogleGenAI1, model: string, baseUrl = gateway.url): Promise<string> {
  const client = new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl } });
  let text = '';
  for await (const fragment of await client.models.generateContentStream({ model, contents: 'hi' })) text += fragment.text ?? '';
  return text;
}

describe.each(SDKS)('$name', ({ GoogleGenAI, ApiError }) => {
  describe.each(OTHERS)('$name', ({ model, protocol }) => {
    test.each(TIMINGS)('after some text, $name, is an ApiError', async ({ script }) => {
      faultd.play(script(cutAfter(protocol, 'two').before.join(''), errorFrames(protocol, ERROR)));
      const failure = await readAll(GoogleGenAI, model).catch((cause: unknown) => cause);
      expect(failure).toBeInstanceOf(ApiError);
      expect(failure).toMatchObject({ status: 503, message: expect.stringContaining('scripted failure') });
    });
  });

  describe.each(OWN)('$name', ({ model, error, frames, last }) => {
    const isRepeated = frames === 2;

    // How bare JSON is read directly depends on its packets: repeated in a read of its own, every major reports it.
    test.skipIf(error === BARE && !isRepeated).each(TIMINGS)(
      'after some text, $name, is no less than without a gateway',
      async ({ script }) => {
        faultd.play(script(cutAfter('gemini', 'two').before.join(''), EVENT));
        const outcome = (url: string) =>
          readAll(GoogleGenAI, model, url).catch((cause: Error) => `${cause.name}: ${cause.message}`);
        const direct = await outcome(faultd.url);
        expect(direct).toMatch(ApiError === ApiError1 ? /^One two$/ : /^ApiError: .*scripted failure/);
        faultd.play(script(cutAfter('gemini', 'two').before.join(''), error));
        const through = await outcome(gateway.url);
        if (isRepeated) expect(through).toMatch(/^ApiError: .*scripted failure/);
        else expect(through).toBe(direct);
      },
    );

    test.each(TIMINGS)('after some text, $name, is the last frame', async ({ script }) => {
      faultd.play(script(cutAfter('gemini', 'two').before.join(''), error));
      const { body } = await ask(gateway.url, { client: 'gemini', model, stream: true });
      const lines = body
        .toString()
        .split(/[\r\n]+/)
        .filter(Boolean);
      expect(lines.filter((line) => line.includes('"error"'))).toHaveLength(frames);
      expect(lines.at(-1)).toMatch(last);
    });
  });

  describe.each(UPSTREAMS)('$name', ({ model, protocol, ...given }) => {
    const error = 'error' in given ? given.error : errorFrames(protocol, ERROR);

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
