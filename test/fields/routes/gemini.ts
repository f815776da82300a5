import type { JsonObject } from '../../../packages/core/src/json/json.ts';
import { geminiCodec } from '../../../packages/core/src/protocols/gemini/codec.ts';
import type { Route } from '../probe.ts';
import { routesOf, type Speaker } from '../route.ts';
import { samplesOf } from './samples.ts';

const codec = geminiCodec;

/** Google itself, as if one model took everything that some model takes. */
const profile = codec.profileFor('google', 'gemini-3-pro');

const SCHEMAS = ['alpha', 'beta'].map((name) => ({ type: 'OBJECT', properties: { [name]: { type: 'STRING' } } }));
const JSON_SCHEMAS = ['alpha', 'beta'].map((name) => ({ type: 'object', properties: { [name]: { type: 'string' } } }));

const texts = ['alpha text', 'beta text'].map((text) => ({ role: 'user', parts: [{ text }] }));

const samples = samplesOf({
  contents: texts.map((content) => [content]),
  systemInstruction: texts.map(({ parts }) => ({ parts })),
  'requests[].content': texts.map(({ parts }) => ({ parts })),
  'requests[].model': ['models/alpha', 'models/beta'],
  'embeddings[].values': [[0.5], [0.25]],
  name: ['models/alpha', 'models/beta'],
  serviceTier: ['flex', 'priority'],
  '**.m*Length': ['1', '2'],
  '**.m*Items': ['1', '2'],
  '**.m*Properties': ['1', '2'],
  '**.thought': [true],
  '**.modality': ['AUDIO', 'IMAGE'],
  'usageMetadata.cachedContentTokenCount': [1, 2],
  '**.groundingChunkIndices': [[0], [1]],
  '**.startIndex': [0, 1],
  '**.endIndex': [5, 6],
  '**.logprobsResult': [0.5, 0.25].map((logProbability) => ({
    chosenCandidates: [{ token: 'Hello.', tokenId: 1, logProbability }],
    topCandidates: [{ candidates: [{ token: 'Hello.', tokenId: 1, logProbability }] }],
  })),
  '**.data': ['YWxwaGE=', 'YmV0YQ=='],
  '**.imageBytes': ['YWxwaGE=', 'YmV0YQ=='],
  '**.thoughtSignature': ['YWxwaGE=', 'YmV0YQ=='],
  '**.mimeType': ['image/png', 'image/jpeg'],
  '**.fileUri': ['https://example.com/alpha.png', 'https://example.com/beta.png'],
  '**.uri': ['https://example.com/alpha', 'https://example.com/beta'],
  '**.name': ['alpha', 'beta'],
  '**.id': ['alpha', 'beta'],
  '**.args': [{ alpha: 1 }, { beta: 2 }],
  '**.response': [{ alpha: 1 }, { beta: 2 }],
  '**.jsonPath': ['$.alpha', '$.beta'],
  '**.role': ['user', 'model'],
  '**.functionResponse.parts': [
    [{ inlineData: { mimeType: 'image/png', data: 'YWxwaGE=' } }],
    [{ inlineData: { mimeType: 'image/png', data: 'YmV0YQ==' } }],
  ],
  '**.parts': [[{ text: 'alpha text' }], [{ text: 'beta text' }]],
  '**.text': ['alpha text', 'beta text'],
  '**.inlineData': [
    { mimeType: 'image/png', data: 'YWxwaGE=' },
    { mimeType: 'image/png', data: 'YmV0YQ==' },
  ],
  '**.startOffset': ['1s', '2s'],
  '**.endOffset': ['3s', '4s'],
  '**.fps': [1, 2],
  'generationConfig.topP': [0.5, 0.25],
  'generationConfig.responseMimeType': ['application/json', 'text/x.enum'],
  'generationConfig.responseSchema': SCHEMAS,
  'generationConfig.responseJsonSchema': JSON_SCHEMAS,
  '**.parameters': SCHEMAS,
  '**.parametersJsonSchema': JSON_SCHEMAS,
  'generationConfig.responseModalities': [['TEXT'], ['TEXT', 'IMAGE']],
  'generationConfig.thinkingConfig.thinkingBudget': [1024, 8192],
  'generationConfig.thinkingConfig.thinkingLevel': ['LOW', 'HIGH'],
  '**.functionCallingConfig.mode': ['ANY', 'NONE'],
  '**.allowedFunctionNames': [['alpha'], ['beta']],
  'candidates[].finishReason': ['MAX_TOKENS', 'SAFETY'],
  'candidates[].index': [0, 1],
  'usageMetadata.promptTokenCount': [40, 50],
  'usageMetadata.candidatesTokenCount': [30, 20],
  'candidates[].content.role': ['model'],
});

interface Content extends JsonObject {
  role?: string;
  parts?: JsonObject[];
}

/** Fields of a part that only count with others. */
const COMPANIONS: Readonly<Record<string, JsonObject>> = {
  inlineData: { mimeType: 'image/png', data: 'YWxwaGE=' },
  fileData: { mimeType: 'image/png', fileUri: 'https://example.com/alpha.png' },
  functionCall: { name: 'alpha', args: {} },
  functionResponse: { name: 'alpha', response: { result: 'done' } },
  executableCode: { language: 'PYTHON', code: 'alpha' },
  codeExecutionResult: { outcome: 'OUTCOME_OK', output: 'alpha' },
  toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: 'alpha', args: {} },
  toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', id: 'alpha', response: {} },
};

const KINDS = [...Object.keys(COMPANIONS), 'text', 'audioTranscription'];

function completePart(part: JsonObject): JsonObject {
  const whole = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, COMPANIONS[name] ? { ...COMPANIONS[name], ...(value as object) } : value]),
  );
  const { functionCall: call } = whole as { functionCall?: { args?: unknown; partialArgs?: JsonObject[] } };
  if (call?.partialArgs) {
    delete call.args;
    call.partialArgs = call.partialArgs.map(completePiece);
  }
  const { functionResponse: answer } = whole as { functionResponse?: { parts?: JsonObject[] } };
  if (answer?.parts) answer.parts = answer.parts.map(completeMedia);
  if (KINDS.some((kind) => kind in whole)) return whole;
  const isVideo = 'videoMetadata' in part || 'mediaResolution' in part || 'mediaProcessing' in part;
  return isVideo ? { inlineData: { mimeType: 'video/mp4', data: 'YWxwaGE=' }, ...whole } : { text: 'Hello.', ...whole };
}

/** A piece of the arguments has a place and a value. */
function completePiece(piece: JsonObject): JsonObject {
  const hasValue = Object.keys(piece).some((name) => name.endsWith('Value'));
  return { jsonPath: '$.alpha', ...(!hasValue && { stringValue: 'alpha' }), ...piece };
}

/** A part of a function response is media. */
function completeMedia(part: JsonObject): JsonObject {
  const whole = completePart(part);
  return 'text' in whole ? { inlineData: COMPANIONS['inlineData'], ...part } : whole;
}

const MODEL_PARTS = [
  'functionCall',
  'thought',
  'thoughtSignature',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
];

/** The user begins; calls have responses and responses calls. */
function completeContent(content: Content): Content[] {
  const parts = (content.parts ?? [{ text: 'Hello.' }]).map(completePart);
  const isModel = parts.some((part) => MODEL_PARTS.some((name) => name in part));
  const whole = { ...content, role: content.role ?? (isModel ? 'model' : 'user'), parts };
  const [part] = parts;
  if (part && 'functionResponse' in part) {
    const { id, name } = part['functionResponse'] as JsonObject; // completed above
    return [{ role: 'model', parts: [{ functionCall: { ...(id !== undefined && { id }), name, args: {} } }] }, whole];
  }
  if (part && 'functionCall' in part) {
    const { id, name } = part['functionCall'] as JsonObject; // completed above
    const answer = { ...(id !== undefined && { id }), name, response: { result: 'done' } };
    return [whole, { role: 'user', parts: [{ functionResponse: answer }] }];
  }
  return [whole];
}

function completeRequest(built: unknown): unknown {
  const body = built as JsonObject & { contents?: Content[]; tools?: JsonObject[]; systemInstruction?: Content }; // made by the sampler
  const { functionCallingConfig: choice } = (body['toolConfig'] ?? {}) as JsonObject;
  const declarations = ['alpha', 'beta'].map((name) => ({ name }));
  const tools = (body.tools ?? []).map((tool) => ({
    ...tool,
    ...(tool['functionDeclarations'] !== undefined && {
      functionDeclarations: (tool['functionDeclarations'] as JsonObject[]).map((declaration) => ({
        name: 'alpha',
        ...declaration,
      })),
    }),
  }));
  const system = body.systemInstruction;
  const config = body['generationConfig'] as JsonObject | undefined;
  const hasSchema = config !== undefined && ('responseSchema' in config || 'responseJsonSchema' in config);
  return {
    ...body,
    contents: [{ role: 'user', parts: [{ text: 'Hello.' }] }, ...listOf(body.contents).flatMap(completeContent)],
    ...(hasSchema && { generationConfig: { responseMimeType: 'application/json', ...config } }),
    ...(choice !== undefined && {
      toolConfig: { ...(body['toolConfig'] as object), functionCallingConfig: { mode: 'ANY', ...(choice as object) } },
    }),
    ...(system && { systemInstruction: { ...system, parts: (system.parts ?? [{ text: 'Hello.' }]).map(completePart) } }),
    ...(choice !== undefined ? { tools: [{ functionDeclarations: declarations }] } : tools.length > 0 && { tools }),
  };
}

const listOf = (contents: unknown): Content[] => (Array.isArray(contents) ? contents : []);

/** A candidate with something in it, and sums that are right. */
function completeResponse(built: unknown): unknown {
  const body = built as JsonObject & { candidates?: JsonObject[]; usageMetadata?: JsonObject }; // made by the sampler
  const text = { role: 'model', parts: [{ text: 'Hello.' }] };
  const given = body.candidates?.length ? body.candidates : [{}];
  const candidates = (given[0]?.['index'] ? [{}, ...given] : given).map((candidate) => ({
    finishReason: 'STOP',
    index: 0,
    ...candidate,
    ...(candidate['groundingMetadata'] !== undefined && {
      groundingMetadata: completeGrounding(candidate['groundingMetadata'] as JsonObject),
    }),
    ...(candidate['logprobsResult'] !== undefined && {
      logprobsResult: completeLogprobs(candidate['logprobsResult'] as JsonObject),
    }),
    content: completeAnswer((candidate['content'] ?? text) as Content),
  }));
  return {
    responseId: 'alpha',
    modelVersion: 'alpha',
    ...body,
    candidates,
    ...(body.usageMetadata && { usageMetadata: withTotal(body.usageMetadata) }),
  };
}

/** Sums that are right, and details that say what they count. */
const withTotal = (usage: JsonObject): JsonObject => {
  const whole: JsonObject = { promptTokenCount: 40, candidatesTokenCount: 30, ...usage };
  for (const [name, value] of Object.entries(whole))
    if (Array.isArray(value)) whole[name] = value.map((detail) => ({ modality: 'AUDIO', tokenCount: 1, ...detail }));
  const parts = ['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'toolUsePromptTokenCount'];
  return { ...whole, totalTokenCount: parts.reduce((sum, name) => sum + Number(whole[name] ?? 0), 0) };
};

/** Tokens are named and counted. */
function completeLogprobs({ chosenCandidates: chosen, topCandidates: top, ...rest }: JsonObject): JsonObject {
  const token = { token: 'Hello.', logProbability: -1 };
  const tops = (top ?? [{}]) as { candidates?: JsonObject[] }[];
  return {
    ...rest,
    chosenCandidates: ((chosen ?? [{}]) as JsonObject[]).map((one) => ({ ...token, ...one })),
    topCandidates: tops.map((one) => ({ ...one, candidates: (one.candidates ?? [{}]).map((other) => ({ ...token, ...other })) })),
  };
}

/** A source counts where a part of the text stands on it. */
function completeGrounding(metadata: JsonObject): JsonObject {
  const web = { web: { uri: 'https://example.com/alpha', title: 'alpha' } };
  const chunks = (metadata['groundingChunks'] as JsonObject[] | undefined) ?? [];
  const supports = (metadata['groundingSupports'] as JsonObject[] | undefined) ?? [{}];
  return {
    ...metadata,
    groundingChunks: [...(chunks.length > 0 ? chunks : [web]), web].map((chunk) =>
      'web' in chunk ? { web: { ...web.web, ...(chunk['web'] as object) } } : chunk,
    ),
    groundingSupports: supports.map((support) => ({
      groundingChunkIndices: [0],
      ...support,
      segment: { startIndex: 0, endIndex: 5, text: 'Hello', ...(support['segment'] as object) },
    })),
  };
}

const completeAnswer = (content: Content): Content => ({
  role: 'model',
  ...content,
  parts: (content.parts?.length ? content.parts : [{ text: 'Hello.' }]).map(completePart),
});

/** Each content is a request of its own. */
function completeEmbedding(built: unknown): unknown {
  const { requests } = built as { requests?: JsonObject[] }; // made by the sampler
  return {
    requests: (requests ?? [{}]).map((request) => ({
      model: 'models/alpha',
      ...request,
      content: completeContent((request['content'] ?? {}) as Content).at(0),
    })),
  };
}

const completeEmbeddings = (built: unknown): unknown => {
  const { embeddings, ...body } = built as JsonObject & { embeddings?: JsonObject[] }; // made by the sampler
  return { ...body, embeddings: [...(embeddings ?? []), {}, {}].map((embedding) => ({ values: [0.5], ...embedding })) };
};

const completeModel = (built: unknown): unknown => ({ name: 'models/alpha', ...(built as object) });

const make = routesOf(codec, profile);
const GENERATE = '/v1beta/models/alpha:generateContent';

const routes: Record<string, Route> = {
  request: make.request({ samples, complete: completeRequest, path: GENERATE }),
  response: make.response({ samples, complete: completeResponse }),
  stream: make.stream({ samples, complete: (built) => [completeResponse(built)] }),
  'embedding request': make.embeddingRequest({
    samples,
    complete: completeEmbedding,
    path: '/v1beta/models/alpha:batchEmbedContents',
  }),
  'embedding response': make.embeddingResponse({ samples, complete: completeEmbeddings }),
  'count request': make.countRequest({ samples, complete: completeRequest, path: '/v1beta/models/alpha:countTokens' }),
  'count response': make.countResponse({ samples, complete: (built) => ({ totalTokens: 1, ...(built as object) }) }),
  model: make.model({ samples, complete: completeModel }),
};

export const geminiRoutes: Speaker = { codec, profile, plain: codec.profileFor('google', 'gemini-2.0-flash'), routes };
