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
    name: 'a schema that is always kept',
    reason: 'a protocol that keeps to every schema need not be told not to be strict',
    covers: ({ key }) => isOneOf(key, '/output_format/json_schema/strict false', '/output_format/json_schema/strict true'),
  },
  {
    name: 'thinking that is not shown',
    reason: 'OpenAI shows no thinking that nobody asked a summary of: to leave it out is what is so anyway',
    covers: ({ key }, _, to) => to === 'openai-responses' && key === '/thinking/display "omitted"',
  },
  {
    name: 'no thinking of a model that cannot',
    reason: 'a model that cannot think is not told not to: Gemini 2.0 knows no such word',
    covers: ({ key }, from) => from === 'gemini' && key === '/thinking/type "disabled"',
  },
  {
    name: 'tools that may not be used',
    reason: 'P61: where a choice cannot name the allowed tools, the others are not sent; the note stands at the choice',
    covers: ({ key }, from) => from === 'openai-responses' && key.startsWith('tool '),
  },
];

/**
 * Not rejected by strict: keywords that a schema dialect lacks move into the description ("Schema dialects" in docs/canonical.md), and the name
 * of a schema has no effect on the response.
 */
export const UNREFUSED: ReadonlySet<string> = new Set(['tools.schema', 'output_format.schema', 'output_format.name']);
