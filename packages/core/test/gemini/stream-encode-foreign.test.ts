import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { bytesOf, protocolOf } from '../../../../test/run.ts';
import { encodeGemini, fragmentsOf, framesOf, geminiContext, hear, piecesOf, SDKS } from '../../../../test/sdk/gemini.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import {
  type CanonicalResponse,
  type ContentBlock,
  isClientCall,
  type StopReason,
  type ToolUseBlock,
} from '../../src/canonical/message.ts';
import { isObject, parseJson } from '../../src/json/json.ts';
import { GeminiGrammar } from '../../src/protocols/gemini/grammar.ts';
import { decodeRequestBody } from '../../src/protocols/gemini/request-decode.ts';
import { encodeResponse } from '../../src/protocols/gemini/response.ts';

const cases = readCases().map(({ id, protocol, raw }) => ({
  name: `case ${id}`,
  protocol,
  bytes: bytesOf(raw) as Uint8Array,
}));
const recordings = readManifest()
  .filter(({ status }) => status < 400)
  .map(({ file, protocol }) => ({ name: file, protocol, bytes: readRecording(file) as Uint8Array }));

const rows = [...cases, ...recordings]
  .map(({ name, protocol, bytes }) => ({ name, protocol: protocolOf(protocol), bytes }))
  .filter(({ protocol }) => protocol.id !== 'gemini');

const FINISH: Record<Exclude<StopReason, 'error'>, string> = {
  end_turn: 'STOP',
  stop_sequence: 'STOP',
  pause_turn: 'STOP',
  tool_use: 'STOP',
  max_tokens: 'MAX_TOKENS',
  context_window: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  refusal: 'SAFETY',
};
const CUT = new Set(['max_tokens', 'context_window', 'content_filter']);

/** The words of audio are written as text. */
const textOf = (content: ContentBlock[], type: 'text' | 'thinking'): string =>
  content
    .map((block) => {
      if (block.type === 'thinking') return type === 'thinking' ? block.thinking : '';
      if (type === 'thinking') return '';
      return block.type === 'text' ? block.text : block.type === 'audio' ? (block.transcript ?? '') : '';
    })
    .join('');

const clientCalls = ({ content }: CanonicalResponse): ToolUseBlock[] =>
  content.filter((block) => block.type === 'tool_use').filter(({ kind }) => isClientCall(kind));

/** The calls that a client may run: those that were cut, or are broken, are not sent. */
function callsOf(message: CanonicalResponse): { id: string; name: string; args: unknown }[] {
  const isCut = CUT.has(message.stop_reason ?? '');
  const isWhole = ({ kind, status, input_raw: raw = '' }: ToolUseBlock): boolean =>
    status !== 'incomplete' && (kind === 'custom' || raw.trim() === '' ? !isCut : parseJson(raw) !== undefined);
  return clientCalls(message)
    .filter(isWhole)
    .map(({ id, name, kind, input_raw: raw = '' }) => {
      const value = kind === 'custom' ? raw : raw.trim() === '' ? null : parseJson(raw);
      return { id, name, args: value === null ? {} : isObject(value) ? value : { input: value } };
    });
}

const hasRefusal = ({ content }: CanonicalResponse): boolean =>
  content.some((block) => block.type === 'text' && block.refusal === true);

/** A turn of calls without one that can be run has a word of its own. */
function finishOf(message: CanonicalResponse): string {
  const stop = message.stop_reason as Exclude<StopReason, 'error'>;
  if (stop === 'tool_use' && clientCalls(message).length > 0 && callsOf(message).length === 0) return 'MALFORMED_FUNCTION_CALL';
  return stop === 'refusal' && hasRefusal(message) ? 'STOP' : FINISH[stop];
}

type Calls = ReturnType<typeof callsOf>;

/** Where a live stream cannot say what the whole message says, and why. */
const LIVE: Record<string, (calls: Calls) => unknown> = {
  // The ids came when the calls had been passed on under derived ones. Both name the same call.
  'case own-ids-after-all-calls': (calls) => calls.map((call) => ({ ...call, id: expect.any(String) })),
  // The second document came when the call had been passed on: the reader of the whole message sees both, a live one the first, with a note.
  'case own-second-document-after-another-call': (calls) => [{ id: 'a', name: 'f', args: { x: 1 } }, ...calls],
};

describe.each(rows)('$protocol.id $name', ({ name, protocol, bytes }) => {
  const context = geminiContext({ source: protocol.id });
  const decoder = protocol.streamDecoder(context);
  const events: CanonicalStreamEvent[] = framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]);
  events.push(...decoder.end());
  const frames = encodeGemini(events, context);
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  const { message, error, complete } = accumulator.finish();
  const isFailure = error !== null || !complete || message.stop_reason === 'error';

  test('keeps the grammar', () => {
    expect(GeminiGrammar.check(frames)).toBe(isFailure ? 'error' : 'done');
  });

  test.each(SDKS)('is read by $name', async ({ stream }) => {
    if (isFailure) {
      await expect(stream(piecesOf(frames))).rejects.toThrow();
      return;
    }
    const heard = hear(await stream(piecesOf(frames)));
    const text = textOf(message.content, 'text');
    expect(heard.text).toBe(text);
    expect(heard.thoughts).toBe(textOf(message.content, 'thinking'));
    expect(heard.calls).toEqual(LIVE[name]?.(callsOf(message)) ?? callsOf(message));
    expect(heard.finish).toBe(finishOf(message));
    if (message.usage) {
      const { input_tokens, output_tokens } = message.usage;
      expect(heard.usage).toMatchObject({ totalTokenCount: input_tokens + output_tokens });
    } else expect(heard.usage).toBeUndefined();
  });

  if (!isFailure)
    test('matches the whole response', async () => {
      const body = encodeResponse(message, geminiContext({ source: protocol.id }));
      for (const { generate } of SDKS) {
        const heard = hear([await generate(200, JSON.stringify(body))]);
        expect(heard.text).toBe(textOf(message.content, 'text'));
        expect(heard.thoughts).toBe(textOf(message.content, 'thinking'));
        expect(heard.calls).toEqual(callsOf(message));
        expect(heard.finish).toBe(hear(fragmentsOf(frames) as never).finish);
        expect(heard.usage).toEqual(hear(fragmentsOf(frames) as never).usage);
      }
    });

  const signed = message.content.filter((block) => 'signature' in block && block.signature);

  if (!isFailure && signed.length > 0)
    test('P81 P86 what was signed comes back from a client that keeps the stream as its history', () => {
      const contents = fragmentsOf(frames).flatMap(({ candidates }) =>
        (candidates as { content: object }[]).map(({ content }) => content),
      );
      const { messages } = decodeRequestBody(
        { contents: [{ role: 'user', parts: [{ text: 'hi' }] }, ...contents] },
        geminiContext(),
        {
          model: 'm',
        },
      );
      const back = (messages[1]?.content ?? []).filter((block) => 'signature' in block && block.signature);
      expect(back.map(essence)).toEqual(signed.filter(isCarried).map(essence));
    });
});

/** The signature of a call that is not sent is not needed either. */
const isCarried = (block: ContentBlock): boolean =>
  block.type !== 'tool_use' || (block.kind !== 'server' && block.kind !== 'mcp');

function essence(block: ContentBlock): unknown {
  const { signature } = block as { signature?: { origin: string; form: string; value: string } };
  return {
    type: block.type,
    says:
      block.type === 'thinking' ? block.thinking : block.type === 'text' ? block.text : block.type === 'tool_use' ? block.id : '',
    signature: signature && { origin: signature.origin, form: signature.form, value: signature.value },
  };
}
