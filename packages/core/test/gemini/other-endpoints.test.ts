import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { geminiContext, type Json, SDKS } from '../../../../test/sdk/gemini.ts';
import { geminiCodec } from '../../src/protocols/gemini/codec.ts';
import { paramOf } from './param-of.ts';

const { models, modelInfo, embeddings, countTokens } = geminiCodec;
if (!models || !modelInfo || !embeddings || !countTokens) throw new Error('Gemini has all of these');

const post = (path: string, body: unknown) => ({ method: 'POST', path, headers: {}, body });

describe('models', () => {
  const wire = {
    models: [
      {
        name: 'models/gemini-2.5-pro',
        version: '2.5',
        displayName: 'Gemini 2.5 Pro',
        description: 'd',
        inputTokenLimit: 100,
        outputTokenLimit: 10,
        supportedGenerationMethods: ['generateContent', 'countTokens'],
        temperature: 1,
      },
      { name: 'tunedModels/t', displayName: 't', supportedGenerationMethods: ['generateContent'] },
    ],
    nextPageToken: 'next',
  };

  test('a list in canonical words, and back', () => {
    const list = models.decode(wire, geminiContext());
    expect(list).toMatchObject({
      models: [
        {
          id: 'gemini-2.5-pro',
          name: 'Gemini 2.5 Pro',
          max_input_tokens: 100,
          max_output_tokens: 10,
          actions: ['generateContent', 'countTokens'],
        },
        { id: 'tunedModels/t' },
      ],
      next_page: 'next',
      has_more: true,
    });
    expect(models.encode(list, geminiContext())).toEqual(wire);
    expect(modelInfo.encode(modelInfo.decode(wire.models[0], geminiContext()), geminiContext())).toEqual(wire.models[0]);
  });

  test('models of another, which clients find by their methods', async () => {
    const body = models.encode({ models: [{ id: 'gpt-5', created: 1, owned_by: 'openai' }] }, geminiContext());
    expect(body).toEqual({
      models: [
        {
          name: 'models/gpt-5',
          displayName: 'gpt-5',
          supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
        },
      ],
    });
    for (const { list, get } of SDKS) {
      expect(await list(JSON.stringify(body))).toMatchObject([{ name: 'models/gpt-5' }]);
      expect(await get(JSON.stringify((body as typeof wire).models[0]))).toMatchObject({
        name: 'models/gpt-5',
        displayName: 'gpt-5',
      });
    }
  });

  test.each([
    [{ models: 5 }, 'models'],
    [{ error: { code: 403, message: 'm', status: 'PERMISSION_DENIED' } }, 'PERMISSION'],
    ['text', 'UPSTREAM_ERROR'],
  ])('%j is not a list', (body, param) => {
    expect(paramOf(() => models.decode(body, geminiContext()))).toBe(param);
  });

  test('an entry without a name is skipped', () => {
    const context = geminiContext();
    expect(models.decode({ models: [{}, 5, { name: 'models/a' }] }, context).models).toHaveLength(1);
    expect(context.notes).toHaveLength(2);
    expect(models.decode({}, context).models).toEqual([]);
  });
});

describe('embeddings', () => {
  const single = { content: { parts: [{ text: 'a' }] }, taskType: 'RETRIEVAL_DOCUMENT', title: 't', outputDimensionality: 3 };

  test('one', () => {
    const request = embeddings.request.decode(post('/v1beta/models/e:embedContent', single), geminiContext());
    expect(request).toEqual({
      model: 'e',
      input: ['a'],
      single: true,
      dimensions: 3,
      task_type: 'RETRIEVAL_DOCUMENT',
      title: 't',
    });
    expect(embeddings.request.encode(request, geminiContext())).toMatchObject({
      path: '/v1beta/models/e:embedContent',
      body: single,
    });
  });

  test('a batch', () => {
    const body = {
      requests: [
        { model: 'models/e', ...single },
        { model: 'models/e', ...single, content: { parts: [{ text: 'b' }, { text: 'c' }] } },
      ],
    };
    const request = embeddings.request.decode(post('/v1beta/models/e:batchEmbedContents', body), geminiContext());
    expect(request).toMatchObject({ model: 'e', input: ['a', 'bc'] });
    expect(embeddings.request.encode(request, geminiContext()).body).toMatchObject({
      requests: [body.requests[0], { content: { parts: [{ text: 'bc' }] } }],
    });
  });

  test('entries that want different things are embedded as the first', () => {
    const context = geminiContext();
    const body = { requests: [single, { ...single, taskType: 'X' }] };
    embeddings.request.decode(post('/v1beta/models/e:batchEmbedContents', body), context);
    expect(context.notes).toMatchObject([{ code: 'DROPPED', path: '/requests/1' }]);
  });

  test.each<[unknown, string]>([
    [{}, 'content'],
    [{ requests: [] }, 'requests'],
    [{ requests: Array(2049).fill(single) }, 'requests'],
    [{ content: { parts: [{ inline_data: { mime_type: 'image/png', data: 'A' } }] } }, 'content.parts[0]'],
    [{ content: { parts: 5 } }, 'content.parts'],
    [{ content: 'a', outputDimensionality: -1 }, 'outputDimensionality'],
  ])('%j is refused at %s', (body, param) => {
    expect(paramOf(() => embeddings.request.decode(post('/v1beta/models/e:embedContent', body), geminiContext()))).toBe(param);
  });

  test('tokens cannot be embedded', () => {
    expect(paramOf(() => embeddings.request.encode({ model: 'm', input: [[1, 2]] }, geminiContext()))).toBe('/input/0');
  });

  test('responses, and back', () => {
    const answer = embeddings.response.decode(
      { embeddings: [{ values: [1, 2] }, { values: [3] }], usageMetadata: { promptTokenCount: 4 } },
      geminiContext(),
    );
    expect(answer).toMatchObject({
      data: [
        { index: 0, embedding: [1, 2] },
        { index: 1, embedding: [3] },
      ],
      usage: { input_tokens: 4 },
    });
    expect(embeddings.response.encode(answer, geminiContext())).toEqual({
      embeddings: [{ values: [1, 2] }, { values: [3] }],
      usageMetadata: { promptTokenCount: 4 },
    });
    expect(
      embeddings.response.encode(embeddings.response.decode({ embedding: { values: [1] } }, geminiContext()), geminiContext()),
    ).toEqual({
      embedding: { values: [1] },
    });
  });

  test('P126 base64 is unpacked, in the order of the inputs', async () => {
    const floats = (...values: number[]) => btoa(String.fromCharCode(...new Uint8Array(new Float32Array(values).buffer)));
    const data = [
      { index: 1, embedding: floats(0.5) },
      { index: 0, embedding: floats(1, -2) },
    ];
    const body = embeddings.response.encode({ model: 'm', data }, geminiContext());
    expect(body).toEqual({ embeddings: [{ values: [1, -2] }, { values: [0.5] }] });
    for (const { embed } of SDKS) expect(await embed(JSON.stringify(body), ['a', 'b'])).toMatchObject(body as Json);
    expect(
      paramOf(() => embeddings.response.encode({ model: 'm', data: [{ index: 0, embedding: '???' }] }, geminiContext())),
    ).toMatch('embedding');
  });

  test.each([{}, { embeddings: [{}] }, { embeddings: [{ values: ['x'] }] }])('%j is not a valid response', (body) => {
    expect(paramOf(() => embeddings.response.decode(body, geminiContext()))).toMatch('embeddings');
  });

  test('a recorded response with usageMetadata', () => {
    const recording = readManifest().find(({ file }) => file === 'gemini/google-03c2ad7a.json');
    const body = JSON.parse(readRecording(recording?.file ?? '').toString()) as Json;
    const answer = embeddings.response.decode(body, geminiContext());
    expect(embeddings.response.encode(answer, geminiContext({ embedding: { model: 'm', input: [] } }))).toEqual(body);
  });
});

describe('countTokens', () => {
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];

  test.each([
    { contents },
    {
      generateContentRequest: {
        model: 'models/m',
        contents,
        systemInstruction: { parts: [{ text: 's' }] },
        tools: [{ googleSearch: {} }],
      },
    },
  ])('%j', (body) => {
    const request = countTokens.request.decode(post('/v1beta/models/m:countTokens', body), geminiContext());
    expect(request).toMatchObject({ model: 'm', messages: [{ role: 'user' }] });
    expect(countTokens.request.encode(request, geminiContext())).toMatchObject({ path: '/v1beta/models/m:countTokens', body });
  });

  test('the response', async () => {
    const answer = countTokens.response.decode(
      { totalTokens: 7, cachedContentTokenCount: 2, promptTokensDetails: [] },
      geminiContext(),
    );
    expect(answer).toEqual({ input_tokens: 7, cached_tokens: 2 });
    const body = countTokens.response.encode(answer, geminiContext());
    expect(body).toEqual({ totalTokens: 7, cachedContentTokenCount: 2 });
    for (const { count } of SDKS) expect(await count(JSON.stringify(body))).toMatchObject({ totalTokens: 7 });
    expect(countTokens.response.decode({}, geminiContext())).toEqual({ input_tokens: 0 });
    expect(paramOf(() => countTokens.response.decode({ totalTokens: 'x' }, geminiContext()))).toBe('totalTokens');
  });
});
