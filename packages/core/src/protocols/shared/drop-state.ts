import type { CanonicalRequest } from '../../canonical/request.ts';
import { type CodecContext, drop, refuse } from './codec.ts';

type Held = 'previous_response_id' | 'conversation_id' | 'cached_content';

/** How the protocols call them. */
const WIRE: Record<Held, string> = {
  previous_response_id: 'previous_response_id',
  conversation_id: 'conversation',
  cached_content: 'cachedContent',
};

/** A template holds instructions, tools and a model that nobody else knows. */
function refuseTemplate({ state }: CanonicalRequest, who: string, context: CodecContext): void {
  if (state?.prompt_id === undefined) return;
  const template = JSON.stringify(state.prompt_id);
  refuse(context, {
    path: '/state/prompt_id',
    feature: 'state.prompt_id',
    message: `prompt template ${template} is stored by its provider and cannot be expanded for ${who}; send the messages instead`,
  });
}

/** Entries of `include` that are heard everywhere: ciphertext travels in a carrier, and log probabilities are a parameter. */
const HEARD: ReadonlySet<string> = new Set(['reasoning.encrypted_content', 'message.output_text.logprobs']);

/** What only a server with a memory could do: refused where the answer would be another, told where it would not. `who`: the server. */
export function dropState(request: CanonicalRequest, who: string, held: readonly Held[], context: CodecContext): void {
  const { state, truncation, include = [] } = request;
  refuseTemplate(request, who, context);
  for (const name of held)
    if (state?.[name] !== undefined)
      refuse(context, {
        path: `/state/${name}`,
        feature: `state.${name}`,
        message: `${who} stores no conversations, so ${WIRE[name]} cannot be resolved; send the whole conversation instead`,
      });
  const lose = (feature: string, message: string): void =>
    drop(context, { path: `/${feature.replace('.', '/')}`, feature, message: `${who} ${message}` });
  if (state?.background) lose('state.background', 'answers at once');
  if (truncation === 'auto') lose('truncation', 'does not shorten a conversation');
  const unheard = include.filter((entry) => !HEARD.has(entry));
  if (unheard.length > 0) lose('include', `cannot be asked to include ${unheard.join(', ')}`);
}
