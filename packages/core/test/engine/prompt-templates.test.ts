import { expect, test } from 'vitest';
import { CODECS, readRequestTarget } from '../../src/engine/index.ts';
import { CodecError, convertRequest, type ProtocolId } from '../../src/index.ts';

const TEMPLATE = { prompt: { id: 'pmpt_1', version: '2', variables: { city: 'Bern' } } };

const errorOf = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    if (error instanceof CodecError) return error.error;
    throw error;
  }
  throw new Error('was not refused');
};

test.each<[name: string, body: object]>([
  ['alone', TEMPLATE],
  ['beside input', { ...TEMPLATE, input: 'hi' }],
  ['beside a model', { ...TEMPLATE, model: 'gpt-5.6' }],
])('a prompt template %s goes to OpenAI Responses as sent', (_, body) => {
  const { body: sent, notes } = convertRequest(body, { from: 'openai-responses', to: 'openai-responses' });
  const input = 'input' in body && [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }];
  expect(sent).toEqual({ ...body, ...(input && { input }) });
  expect(notes).toEqual([]);
});

test.each(
  (['openai-chat', 'anthropic-messages', 'gemini'] as const).flatMap((to) => [
    { to, name: 'alone', body: { ...TEMPLATE, model: 'm' } },
    { to, name: 'beside input', body: { ...TEMPLATE, model: 'm', input: 'hi' } },
    { to, name: 'without a model', body: TEMPLATE },
  ]),
)('a prompt template $name is refused for $to: only its provider can expand it', ({ to, body }) => {
  expect(errorOf(() => convertRequest(body, { from: 'openai-responses', to }))).toMatchObject({
    code: 'INCOMPATIBLE_FEATURE',
    http_status: 400,
    param: '/prompt/id',
    message: expect.stringMatching(/^prompt template "pmpt_1" .*cannot be expanded/),
  });
});

const wire = (body: object) => ({ method: 'POST', path: '/v1/responses', headers: {}, body });

test('a prompt template names its own model', () => {
  expect(readRequestTarget(CODECS['openai-responses'], wire({ ...TEMPLATE, stream: true }))).toEqual({
    model: '',
    isStream: true,
  });
  expect(readRequestTarget(CODECS['openai-responses'], wire({ ...TEMPLATE, model: 'm' }))).toEqual({
    model: 'm',
    isStream: false,
  });
});

test.each<[ProtocolId, object]>([
  ['openai-responses', { input: 'hi' }],
  ['openai-responses', { prompt: 'pmpt_1' }],
  ['openai-responses', { prompt: {} }],
  ['openai-chat', TEMPLATE],
  ['anthropic-messages', TEMPLATE],
])('in any other %s request the model is required: %j', (protocol, body) => {
  expect(errorOf(() => readRequestTarget(CODECS[protocol], wire(body)))).toMatchObject({
    code: 'MISSING_REQUIRED_FIELD',
    param: 'model',
  });
});
