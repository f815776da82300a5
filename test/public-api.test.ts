import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const core = fileURLToPath(new URL('../packages/core', import.meta.url));
const manifest = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8')) as {
  exports: Record<string, { types: string; default: string }>;
};

/** What users can import, entry by entry. A name that comes or goes here is a change of the public API: say so in the changelog. */
const API: Record<string, string[]> = {
  '.': [
    ...['CodecError', 'DEFAULT_CHAT_PROFILE', 'OPENAI_CHAT_PROFILES', 'openaiChatCodec', 'profileFor'],
    ...[
      'Assembler',
      'ChatAccumulator',
      'DeltaError',
      'DeltaFold',
      'LimitError',
      'MessageAccumulator',
      'PROTOCOLS',
      'PROTOCOL_ALIASES',
    ],
    ...[
      'RULES',
      'StreamRuleError',
      'StreamValidator',
      'ToolCallAssembler',
      'accumulate',
      'createAccumulator',
      'createSseDecoder',
    ],
    ...[
      'createSseEncoder',
      'encodeSse',
      'findProtocol',
      'isClientCall',
      'mergeDelta',
      'openaiChatWithCompletion',
      'ownError',
      'pipe',
      'readEvents',
      'recomputeStop',
    ],
    ...['splitThink', 'sseComment', 'withTitle'],
  ],
  './accumulate': [
    'ChatAccumulator',
    'DeltaError',
    'DeltaFold',
    'LimitError',
    'MessageAccumulator',
    'ToolCallAssembler',
    'createAccumulator',
    'mergeDelta',
    'splitThink',
  ],
  './sse': ['createSseDecoder', 'createSseEncoder', 'encodeSse', 'sseComment'],
  './io': ['accumulate', 'readEvents'],
  './openai-chat': ['openaiChat'],
  './openai-chat/codec': ['DEFAULT_CHAT_PROFILE', 'OPENAI_CHAT_PROFILES', 'openaiChatCodec', 'profileFor'],
  './anthropic-messages': ['anthropicMessages'],
  './openai-responses': ['openaiResponses'],
  './gemini': ['gemini'],
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
