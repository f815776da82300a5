import type { RuleId } from '@sluice/core';
import { expect, test } from 'vitest';
import { readManifest, readRecording } from '../corpus.ts';
import { protocolOf } from '../run.ts';
import { examine } from './examine.ts';

/** What the collectors of the recordings noted of each, by their own reading of the bytes, and what we call it. */
const QUIRKS = {
  tool_id_empty_string: ['chat/tool-id-empty'],
  finish_reason_more_than_once: ['chat/finish-repeated'],
  role_on_every_chunk: ['chat/role-repeated'],
  role_repeated: ['chat/role-repeated'],
  usage_with_finish_reason: ['chat/usage-with-choices', 'chat/usage-elsewhere'],
  usage_on_many_chunks: ['chat/usage-repeated'],
  content_with_finish_reason: ['chat/finish-with-content'],
  tool_calls_with_finish_reason: ['chat/finish-with-content'],
  tool_call_without_index: ['chat/tool-index-missing'],
  tool_index_reused: ['chat/tool-index-reused'],
  tool_name_repeated: ['chat/tool-name-repeated'],
  tool_arguments_null: ['chat/tool-args-null'],
  tool_arguments_invalid_json: ['chat/tool-args-invalid', 'chat/tool-args-null'],
  tool_arguments_not_object: ['chat/tool-args-not-object'],
  role_never: ['chat/role-missing'],
  no_finish_reason: ['chat/finish-missing', 'chat/ended-early', 'chat/error-in-stream', 'sse/empty-stream'],
  finish_reason_empty_string: ['chat/finish-empty'],
  delta_after_finish: ['chat/content-after-finish', 'chat/finish-repeated'],
  sse_field_error: ['sse/error-field'],
  no_final_blank_line: ['sse/unterminated-event'],
} as const satisfies Record<string, readonly RuleId[]>;

/** Where we read the bytes in another way than who noted it. */
const OTHERWISE: readonly (readonly [file: RegExp, quirk: string, why: string])[] = [
  [
    /mistral-e3e057b6|openai-9e057e0e|openai-2b32555b|writer-e09dfd1c/,
    'role',
    'there are two choices, and each says its role once',
  ],
  [/openrouter-f4c9629b/, 'role_never', 'the stream is an error, and has no delta that could say it'],
  [/openrouter-(e2e99f5f|b8283858|fae3f283)/, 'tool_arguments_null', 'the field is left out, which is allowed'],
];

const isRead = (file: string, quirk: string): boolean =>
  !OTHERWISE.some(([files, start]) => files.test(file) && quirk.startsWith(start));

const isQuirk = (name: string): name is keyof typeof QUIRKS => Object.hasOwn(QUIRKS, name);

test('quirks noted by the recorders are found', () => {
  const missed: string[] = [];
  let noted = 0;
  for (const { file, protocol, stream, quirks = [] } of readManifest()) {
    const known = stream && protocol === 'openai-chat' ? quirks.filter(isQuirk).filter((quirk) => isRead(file, quirk)) : [];
    if (known.length === 0) continue;
    const { findings } = examine([readRecording(file)], { protocol: protocolOf(protocol) });
    const rules = new Set(findings.map(({ rule }) => rule));
    noted += known.length;
    missed.push(...known.filter((quirk) => !QUIRKS[quirk].some((rule) => rules.has(rule))).map((quirk) => `${file}: ${quirk}`));
  }
  console.log(`doctor: ${noted - missed.length} of ${noted} quirks that others noted`);
  expect(missed).toEqual([]);
});
