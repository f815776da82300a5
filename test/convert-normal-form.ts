import type { ProtocolId } from '../packages/core/src/index.ts';
import type { Fact } from './convert-facts.ts';

/** A fact that may go without a note, and why. */
export interface Silence {
  name: string;
  reason: string;
  covers(fact: Fact, from: ProtocolId, to: ProtocolId): boolean;
}

const isOneOf = (key: string, ...keys: string[]): boolean => keys.includes(key);

/** What a protocol need not say, because it is so anyway. */
const DEFAULTS = [
  '/parameters/n 1',
  '/parameters/temperature 1',
  '/parameters/top_p 1',
  '/parameters/frequency_penalty 0',
  '/parameters/presence_penalty 0',
  '/parameters/top_logprobs 0',
  '/parameters/logprobs false',
  '/parameters/stop_sequences []',
  '/modalities ["text"]',
  '/parallel_tool_use true',
  '/tool_choice/type "auto"',
  '/service_tier "auto"',
  '/service_tier "standard"',
  '/thinking/type "adaptive"',
  '/thinking/type "enabled"',
  '/thinking/display "summarized"',
  '/store false',
  '/store true',
  '/metadata {}',
  '/truncation "disabled"',
  '/state/background false',
  '/include []',
];

export const NORMAL_FORM: readonly Silence[] = [
  {
    name: 'defaults',
    reason: 'what is so anyway need not be said: every protocol has these as its defaults, or has no such switch',
    covers: ({ key }) => isOneOf(key, ...DEFAULTS),
  },
  {
    name: 'labels of a format',
    reason:
      'OpenAI asks for a name of the schema, and it is no part of the answer; where schemas are always kept, strict says nothing',
    covers: ({ path }) => isOneOf(path, '/output_format/json_schema/name', '/output_format/json_schema/strict'),
  },
  {
    name: 'an effort that is switched off',
    reason: 'Anthropic takes an effort beside disabled thinking; elsewhere there is one word for both (CANONICAL §15)',
    covers: ({ path }, from) => from === 'anthropic-messages' && path === '/thinking/effort',
  },
  {
    name: 'tools that may not be used',
    reason: 'P61: where a choice cannot name the allowed tools, the others are not sent; the note stands at the choice',
    covers: ({ key }, from) => from === 'openai-responses' && key.startsWith('tool '),
  },
];

/** Losses that have no note yet. An entry that no request needs any more fails the suite, and goes. */
export const GAPS: readonly Silence[] = [
  {
    name: 'cache marks',
    reason: 'LOSS, cache markers: marks that the target does not know go without a note',
    covers: ({ path }) => path.endsWith('/cache_control') || path.startsWith('/prompt_cache/'),
  },
  {
    name: 'names of speakers',
    reason: 'LOSS, participant name: it goes without a note',
    covers: ({ path }) => /^\/messages\/\d+\/name$/.test(path),
  },
  {
    name: 'the description of a format',
    reason: 'Anthropic and Gemini have no place for it beside the schema, and it goes without a note',
    covers: ({ path }) => path === '/output_format/json_schema/description',
  },
  {
    name: 'a seed of zero',
    reason: 'the encoder of Anthropic takes 0 for absent, and does not tell of it',
    covers: ({ key }) => key === '/parameters/seed 0',
  },
  {
    name: 'thinking that is told at another place',
    reason: 'notes about budget, summary and thinking in history stand at a pointer that the source does not have',
    covers: ({ path, key }) => path.startsWith('/thinking/') || key === 'thought',
  },
  {
    name: 'numbers for types',
    reason: 'Gemini takes the enums of its schemas as numbers; the decoder leaves them, so that tools are taken for no objects',
    covers: ({ key }, from) => from === 'gemini' && /^(call|result of call) function /.test(key),
  },
  {
    name: 'titles and odd media of files',
    reason: 'a title is not told to Gemini, a file of an odd type not by Gemini',
    covers: ({ key }) => key.startsWith('file '),
  },
];

/** Not refused by strict: what a dialect of JSON schema cannot say stands in the description instead (CANONICAL §13). */
export const UNREFUSED: ReadonlySet<string> = new Set(['tools.schema', 'output_format.schema']);
