import type { CanonicalError, ProtocolId, ProviderProfile } from '@sluice/core';

interface Adaptation {
  protocols: readonly ProtocolId[];
  /** What a refusal says. */
  when: RegExp;
  learn: Partial<ProviderProfile>;
}

/** What a refusal teaches of a provider: the field it names, and how it is avoided. The first that fits and is not known yet counts. */
const ADAPTATIONS: readonly Adaptation[] = [
  {
    protocols: ['openai-chat'],
    when: /max_completion_tokens.{0,200}instead|use .?max_completion_tokens/i,
    learn: { max_tokens_field: 'max_completion_tokens' },
  },
  { protocols: ['openai-chat'], when: /max_completion_tokens/i, learn: { max_tokens_field: 'max_tokens' } },
  { protocols: ['openai-chat'], when: /max_tokens/i, learn: { max_tokens_field: 'max_completion_tokens' } },
  { protocols: ['openai-chat'], when: /stream_options|include_usage/i, learn: { stream_usage: false } },
  { protocols: ['openai-chat', 'openai-responses'], when: /temperature/i, learn: { supports_sampling: false } },
  { protocols: ['anthropic-messages'], when: /temperature|top_p/i, learn: { rejects_sampling: true } },
  { protocols: ['anthropic-messages'], when: /adaptive/i, learn: { thinking_mode: 'budget' } },
  { protocols: ['anthropic-messages'], when: /budget_tokens|thinking/i, learn: { thinking_mode: 'adaptive' } },
];

/** What to try next after a refusal; undefined when it teaches nothing. */
export function adaptTo(
  { message, param }: CanonicalError,
  protocol: ProtocolId,
  known: Partial<ProviderProfile>,
): Partial<ProviderProfile> | undefined {
  const words = `${param ?? ''} ${message}`;
  const isNew = (learn: Partial<ProviderProfile>): boolean => Object.keys(learn).every((field) => !Object.hasOwn(known, field));
  return ADAPTATIONS.find(({ protocols, when, learn }) => protocols.includes(protocol) && when.test(words) && isNew(learn))
    ?.learn;
}
