import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const core = fileURLToPath(new URL('../packages/core', import.meta.url));
const manifest = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8')) as {
  exports: Record<string, { types: string; default: string }>;
};

const TOOL_CALLS = ['LimitError', 'ToolCallAssembler'];

/** What users can import, entry by entry. A name that comes or goes here is a change of the public API: say so in the changelog. */
const API: Record<string, string[]> = {
  '.': [
    ...[
      'accumulate',
      'readEvents',
      'createAccumulator',
      'MessageAccumulator',
      'mergeDelta',
      'DeltaFold',
      'splitThink',
      ...TOOL_CALLS,
    ],
    ...['convertRequest', 'convertResponse', 'convertStream', 'convertError', 'CodecError'],
    ...['createStreamConverter', 'createExchange', 'createFetchHandler'],
    ...['createSseDecoder', 'encodeSse', 'Examiner', 'RULES', 'PROTOCOLS', 'findProtocol'],
  ],
  './accumulate': [
    ...['ChatAccumulator', 'DeltaError', 'DeltaFold', 'MessageAccumulator', 'createAccumulator', 'mergeDelta', 'splitThink'],
    ...TOOL_CALLS,
  ],
  './tool-calls': TOOL_CALLS,
  './sse': ['createSseDecoder', 'createSseEncoder', 'encodeSse', 'encodeSseComment'],
  './io': ['accumulate', 'convertStream', 'readEvents'],
  './fetch': ['createRepairFetch', 'createRepairFetchFor', 'prepareRequests'],
  './openai-chat': ['openaiChat'],
  './openai-chat/repair': ['openaiChatRepair'],
  './openai-chat/codec': ['DEFAULT_CHAT_PROFILE', 'OPENAI_CHAT_PROFILES', 'openaiChatCodec', 'profileFor'],
  './anthropic-messages': ['anthropicMessages'],
  './anthropic-messages/repair': ['anthropicMessagesRepair'],
  './anthropic-messages/codec': ['ANTHROPIC_PROFILES', 'DEFAULT_ANTHROPIC_PROFILE', 'anthropicMessagesCodec', 'profileFor'],
  './openai-responses': ['openaiResponses'],
  './openai-responses/repair': ['openaiResponsesRepair'],
  './openai-responses/codec': ['DEFAULT_RESPONSES_PROFILE', 'OPENAI_RESPONSES_PROFILES', 'openaiResponsesCodec', 'profileFor'],
  './gemini': ['gemini'],
  './gemini/repair': ['geminiRepair'],
  './gemini/codec': ['DEFAULT_GEMINI_PROFILE', 'GEMINI_MODELS', 'GEMINI_PROFILES', 'geminiCodec', 'profileFor', 'readKey'],
  './engine': [
    ...['CODECS', 'PROTOCOL_ALIASES', 'StreamAccumulator', 'createContext', 'findCodec', 'openaiChatWithCompletion', 'pipe'],
    ...['convertRequest', 'convertResponse', 'convertError', 'createStreamConverter', 'createExchange'],
    ...['convertResponseToStream', 'convertStreamToResponse', 'replay', 'decodeRequest', 'encodeError', 'nameProvider'],
    ...['convertModels', 'convertModelInfo', 'encodeModels', 'encodeModelInfo'],
    ...['convertCountTokensRequest', 'convertCountTokensResponse', 'buildTokenEstimate', 'estimateTokens'],
    ...['convertEmbeddingsRequest', 'convertEmbeddingsResponse', 'convertRerankRequest', 'convertRerankResponse'],
    ...['findRoute', 'readRequestTarget', 'checkModelName', 'checkRequestLimits', 'REQUEST_LIMITS', 'choosePassRequest'],
  ],
  './internal': [
    ...['BoundedCache', 'GRAMMARS', 'GrammarError', 'JsonScanner', 'MAX_JSON_DEPTH', 'StreamRuleError', 'StreamValidator'],
    ...[
      'buildTooDeepError',
      'computeScore',
      'decodeChatUsage',
      'encodeResponse',
      'encodeResponseStream',
      'endOfString',
      'findBreakage',
      'findJsonFault',
      'findJsonStrings',
      'isClientCall',
      'isDeepText',
      'isDeeperThan',
    ],
    ...[
      'learnProfile',
      'listInexactNumbers',
      'normalizeField',
      'ownError',
      'parseDeployment',
      'parseJson',
      'recomputeStop',
      'repairInPlace',
      'withFields',
    ],
  ],
};

test('the root has at most 25 values', () => {
  expect(API['.']?.length).toBeLessThanOrEqual(25);
});

test('docs/api.md describes every value of the root and of the engine, and every entry', () => {
  const page = readFileSync(join(core, '../../docs/api.md'), 'utf8');
  const [table = '', engine = ''] = [/## The root\n([\s\S]*?)\n## /, /## The engine\n([\s\S]*?)\n```/].map(
    (part) => part.exec(page)?.[1],
  );
  const missing = [
    ...(API['.'] ?? []).filter((name) => !new RegExp(`^\\| \`${name}\\b`, 'm').test(table)),
    ...(API['./engine'] ?? []).filter((name) => !engine.includes(`\`${name}\``)),
    ...Object.keys(API).filter((entry) => !page.includes(entry.slice(1))),
  ];
  expect(missing).toEqual([]);
});

test('the entries are those of package.json', () => {
  expect(Object.keys(manifest.exports)).toEqual([...Object.keys(API), './package.json']);
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
