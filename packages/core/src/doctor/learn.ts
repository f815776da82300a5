import { isObject } from '../accumulate/overlay.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';
import type { Examination } from './report.ts';

type ReasoningField = ProviderProfile['reasoning_field'];

/** Where reasoning was found, as a profile says it; `reasoning_details` go with the field beside them. */
const FIELDS: readonly (readonly [found: string, field: ReasoningField])[] = [
  ['parts', 'parts'],
  ['reasoning_content', 'reasoning_content'],
  ['reasoning', 'reasoning'],
];

/**
 * What the answers of a provider tell of it, as fields of its profile: lay it over what is known with `profile` in the options of a conversion,
 * or under `profile:` of the gateway's configuration. Nothing is guessed: what no answer shows is left out.
 */
export function learnProfile(examinations: readonly Examination[]): Partial<ProviderProfile> {
  const chats = examinations.filter(({ protocol }) => protocol === 'openai-chat');
  const seen = new Set(chats.flatMap(({ traits }) => traits.reasoning_fields));
  const field = FIELDS.find(([found]) => seen.has(found))?.[1];
  return {
    ...(field && { reasoning_field: field }),
    ...(chats.some(isAdditive) && { reasoning_additive: true }),
  };
}

/** More was thought than was written in all, and the total does not count it. */
function isAdditive({ message: { wire_usage: usage } }: Examination): boolean {
  if (!isObject(usage)) return false;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  const details = usage['completion_tokens_details'];
  const reasoning = isObject(details) ? details['reasoning_tokens'] : undefined;
  if (![prompt, completion, total, reasoning].every((count) => typeof count === 'number')) return false;
  return Number(reasoning) > Number(completion) && Number(total) === Number(prompt) + Number(completion);
}
