import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const core = fileURLToPath(new URL('../packages/core', import.meta.url));
const manifest = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8')) as {
  exports: Record<string, { types: string; default: string }>;
};

const ACCUMULATE = [
  'ChatAccumulator',
  'DeltaError',
  'DeltaFold',
  'LimitError',
  'MessageAccumulator',
  'ToolCallAssembler',
  'createAccumulator',
  'mergeDelta',
  'splitThink',
];
const SSE = ['createSseDecoder', 'createSseEncoder', 'encodeSse', 'sseComment'];
const CANONICAL = ['StreamRuleError', 'StreamValidator', 'isClientCall', 'ownError', 'recomputeStop'];
const CHAT = ['DEFAULT_CHAT_PROFILE', 'OPENAI_CHAT_PROFILES', 'openaiChatCodec', 'profileFor'];
const ENGINE = [
  'collectStream',
  'convertCountTokensRequest',
  'convertCountTokensResponse',
  'convertEmbeddingsRequest',
  'convertEmbeddingsResponse',
  'convertError',
  'convertModelInfo',
  'convertModels',
  'convertRequest',
  'convertRerankRequest',
  'convertRerankResponse',
  'convertResponse',
  'decodeRequest',
  'encodeError',
  'encodeModelInfo',
  'encodeModels',
  'estimateAnswer',
  'estimateTokens',
  'nameProvider',
  'passRequestFor',
  'replay',
  'replayResponse',
  'streamConverter',
  'translate',
];
const IO = ['accumulate', 'convertStream', 'readEvents'];
const DOCTOR = ['Examiner', 'breakageOf', 'learnProfile', 'scoreOf'];
const REGISTRIES = ['CODECS', 'GRAMMARS', 'PROTOCOLS', 'PROTOCOL_ALIASES', 'RULES', 'findCodec', 'findProtocol', 'withTitle'];

/** What users can import, entry by entry. A name that comes or goes here is a change of the public API: say so in the changelog. */
const API: Record<string, string[]> = {
  '.': [
    ...[...ACCUMULATE, ...SSE, ...CANONICAL, ...CHAT, ...ENGINE, ...IO, ...DOCTOR, ...REGISTRIES],
    ...[
      'Assembler',
      'JsonScanner',
      'MAX_JSON_DEPTH',
      'endOfString',
      'isDeeperThan',
      'BoundedCache',
      'CodecError',
      'GrammarError',
      'REQUEST_LIMITS',
      'checkModelName',
      'checkRequestLimits',
      'createFetchHandler',
      'deploymentOf',
      'findJsonStrings',
      'openaiChatWithCompletion',
      'pipe',
      'readAsked',
      'routeOf',
      'withFields',
    ],
  ],
  './accumulate': ACCUMULATE,
  './sse': SSE,
  './io': IO,
  './openai-chat': ['openaiChat'],
  './openai-chat/codec': CHAT,
  './anthropic-messages': ['anthropicMessages'],
  './anthropic-messages/codec': ['ANTHROPIC_PROFILES', 'DEFAULT_ANTHROPIC_PROFILE', 'anthropicMessagesCodec', 'profileFor'],
  './openai-responses': ['openaiResponses'],
  './openai-responses/codec': ['DEFAULT_RESPONSES_PROFILE', 'OPENAI_RESPONSES_PROFILES', 'openaiResponsesCodec', 'profileFor'],
  './gemini': ['gemini'],
  './gemini/codec': ['DEFAULT_GEMINI_PROFILE', 'GEMINI_MODELS', 'GEMINI_PROFILES', 'geminiCodec', 'keyOf', 'profileFor'],
  './engine': ENGINE,
};

test('the entries are those of package.json', () => {
  expect(Object.keys(manifest.exports)).toEqual(Object.keys(API));
});

describe.each(Object.entries(API))('@sluice/core %s', (entry, names) => {
  const { types, default: file } = manifest.exports[entry] ?? { types: '', default: '' };

  test('exports these names', async () => {
    const source = join(core, file.replace('./dist/', 'src/').replace(/\.js$/, '.ts'));
    expect(Object.keys(await import(source)).toSorted()).toEqual(names.toSorted());
  });

  test('is built, with types', async () => {
    expect(existsSync(join(core, types))).toBe(true);
    expect(Object.keys(await import(join(core, file))).toSorted()).toEqual(names.toSorted());
  });
});
