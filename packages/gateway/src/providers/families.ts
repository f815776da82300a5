import type { ProviderId } from './table.ts';

/** The vendor whose models are named like this, for a model name without a provider. */
export function findFamily(model: string): ProviderId | undefined {
  return FAMILIES.find(([names]) => names.test(model))?.[1];
}

/** Name patterns of models and the vendor itself, where the bare name is valid. */
const FAMILIES: readonly (readonly [names: RegExp, provider: ProviderId])[] = [
  [
    /^(gpt-|chatgpt-|codex-|o[1-9](-|$)|text-embedding-|(omni|text)-moderation-|ft:|davinci|babbage-|tts-|whisper-|dall-e|sora-)/,
    'openai',
  ],
  [/^claude-/, 'anthropic'],
  [/^(gemini-|gemma-|gemini-embedding|imagen-|veo-|lyria-|learnlm-)/, 'google'],
  [/^(mistral-|ministral-|magistral-|codestral-|devstral-|pixtral-|voxtral-|open-mi[sx]tral-)/, 'mistral'],
  [/^deepseek-/, 'deepseek'],
  [/^grok-/, 'xai'],
  [/^(kimi-|moonshot-)/, 'moonshot'],
  [/^glm-/i, 'zai'],
  [/^(minimax-|abab)/i, 'minimax'],
  [/^(qwen|qwq-|qvq-)/, 'alibaba'],
  [/^sonar(-|$)/, 'perplexity'],
];
