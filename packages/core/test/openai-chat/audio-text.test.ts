import { expect, test } from 'vitest';
import { convertRequest, type ProtocolId } from '../../src/index.ts';

// Mistral's AudioChunk: `input_audio` is a text.

const WAV = 'UklGRiQAAABXQVZF';
const body = (audio: unknown) => ({
  model: 'm',
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'listen' },
        { type: 'input_audio', input_audio: audio },
      ],
    },
  ],
});

const convert = (audio: unknown, to: ProtocolId, provider: string) => {
  const { body: sent, notes } = convertRequest(body(audio), { from: 'openai-chat', to, provider });
  return { sent, told: notes.map(({ code, path }) => `${code} ${path}`) };
};

test.each<[name: string, audio: unknown, sent: unknown]>([
  ['base64', WAV, WAV],
  ['base64 of a format that OpenAI does not take', 'T2dnUwAC', 'T2dnUwAC'],
  ['base64 of an unknown format', 'AAAA', 'AAAA'],
  ['a data URL', `data:audio/mp3;base64,${WAV}`, `data:audio/mp3;base64,${WAV}`],
  ['a URL', 'https://a.example/b.mp3', 'https://a.example/b.mp3'],
  ['the object of OpenAI', { data: WAV, format: 'wav' }, WAV],
])('to Mistral: %s', (_, audio, sent) => {
  const part = { type: 'input_audio', input_audio: sent };
  expect(convert(audio, 'openai-chat', 'mistral')).toMatchObject({ sent: { messages: [{ content: [{}, part] }] }, told: [] });
});

test.each<[name: string, audio: unknown, sent: unknown]>([
  ['base64', WAV, { data: WAV, format: 'wav' }],
  ['mp3 with an ID3 tag', 'SUQzBAAA', { data: 'SUQzBAAA', format: 'mp3' }],
  ['mp3 frames', '//uQxAAA', { data: '//uQxAAA', format: 'mp3' }],
  ['a data URL', 'data:audio/mpeg;base64,AAAA', { data: 'AAAA', format: 'mp3' }],
])('to OpenAI: %s becomes an object', (_, audio, sent) => {
  const part = { type: 'input_audio', input_audio: sent };
  expect(convert(audio, 'openai-chat', 'openai')).toMatchObject({ sent: { messages: [{ content: [{}, part] }] }, told: [] });
});

test('to a server that is not known the text goes as it came', () => {
  const part = { type: 'input_audio', input_audio: WAV };
  expect(convert(WAV, 'openai-chat', 'vllm')).toMatchObject({ sent: { messages: [{ content: [{}, part] }] } });
});

test('to Gemini it is inline data', () => {
  const part = { inlineData: { mimeType: 'audio/wav', data: WAV } };
  expect(convert(WAV, 'gemini', 'google')).toMatchObject({
    sent: { contents: [{ parts: [{ text: 'listen' }, part] }] },
    told: [],
  });
});

test.each<[name: string, audio: string]>([
  ['an address that only Mistral fetches', 'https://a.example/b.mp3'],
  ['an unknown format', 'AAAA'],
])('to OpenAI Responses %s is dropped with a note', (_, audio) => {
  expect(convert(audio, 'openai-responses', 'openai').told).toEqual(['DROPPED /messages/0/content/1']);
});
