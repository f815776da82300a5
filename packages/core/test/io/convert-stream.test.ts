import { describe, expect, test } from 'vitest';
import { quietFor } from '../../../../test/wait.ts';
import { convertStream, type StreamReport } from '../../src/index.ts';
import { convertStream as convertWith } from '../../src/io/index.ts';
import { openaiChatCodec } from '../../src/protocols/openai-chat/codec.ts';

const chunk = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;
const bytes = (text: string) => new TextEncoder().encode(text);

function source(pieces: readonly string[], failure?: Error): ReadableStream<Uint8Array> {
  const left = [...pieces];
  return new ReadableStream({
    pull: (controller) => {
      const piece = left.shift();
      if (piece !== undefined) controller.enqueue(bytes(piece));
      else if (failure) controller.error(failure);
      else controller.close();
    },
  });
}

const read = (stream: ReadableStream<Uint8Array>) => new Response(stream).text();

describe('convertStream', () => {
  test('pipes through', async () => {
    let report: StreamReport | undefined;
    const onEnd = (end: StreamReport) => {
      report = end;
    };
    const body = source([chunk('so '), chunk('it is', 'stop'), 'data: [DONE]\n\n']);
    const text = await read(body.pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic', tap: true, onEnd })));
    expect(text).toMatch(/"so "[\s\S]*"it is"[\s\S]*event: message_stop/);
    expect(report).toMatchObject({ notes: [], error: undefined, result: { complete: true } });
  });

  test('takes codecs, without loading the others', async () => {
    const body = source([chunk('so', 'stop'), 'data: [DONE]\n\n']);
    expect(await read(body.pipeThrough(convertWith({ from: openaiChatCodec, to: openaiChatCodec })))).toContain('[DONE]');
  });

  test('an early end is an error of the client', async () => {
    const text = await read(source([chunk('so')]).pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic' })));
    expect(text).toMatch(/"so"[\s\S]*event: error\n[^\n]*\n\n$/);
  });

  test('a connection that breaks is one, too', async () => {
    let report: StreamReport | undefined;
    const converter = convertStream({ from: 'openai-chat', to: 'anthropic', onEnd: (end) => (report = end) });
    const text = await read(source([chunk('so')], new Error('socket hang up')).pipeThrough(converter));
    expect(text).toMatch(/"so"[\s\S]*event: error\n[^\n]*socket hang up/);
    expect(report?.error).toMatchObject({ code: 'UPSTREAM_ERROR' });
  });

  test('who goes away stops the source', async () => {
    let cancelled: unknown;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(bytes(chunk('x'))),
      cancel: (reason) => {
        cancelled = reason;
      },
    });
    const reader = endless.pipeThrough(convertStream({ from: 'openai-chat', to: 'gemini' })).getReader();
    await reader.read();
    await reader.cancel('enough');
    await expect.poll(() => cancelled).toBe('enough');
  });

  test('a reader that cancels ends the report, once', async () => {
    const reports: StreamReport[] = [];
    const onEnd = (report: StreamReport) => reports.push(report);
    const converter = convertStream({ from: 'openai-chat', to: 'anthropic', tap: true, onEnd });
    const reader = source([chunk('so '), chunk('it is', 'stop'), 'data: [DONE]\n\n'])
      .pipeThrough(converter)
      .getReader();
    await reader.read();
    await reader.cancel();
    await quietFor(20);
    expect(reports).toMatchObject([{ error: undefined, result: { complete: false } }]);
  });

  test('a slow reader slows the source', async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled++;
        controller.enqueue(bytes(chunk('x')));
      },
    });
    const reader = endless.pipeThrough(convertStream({ from: 'openai-chat', to: 'gemini' })).getReader();
    await reader.read();
    await quietFor(20);
    expect(pulled).toBeLessThan(10);
    await reader.cancel();
  });

  test('a stream that is no stream', async () => {
    const text = await read(source(['<html>no</html>']).pipeThrough(convertStream({ from: 'openai-chat', to: 'openai-chat' })));
    expect(text).toMatch(/^data: \{"error".*an HTML page/);
  });
});
