import type { JsonObject } from '../../accumulate/overlay.ts';
import type { MessageStart } from '../../canonical/events.ts';
import type { Extensions } from '../../canonical/protocol.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { isForeign } from '../shared/answer.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { PROTOCOL } from './kept.ts';
import { encodeSystem } from './system-encode.ts';
import { encodeText } from './text-options.ts';
import { encodeThinking } from './thinking.ts';
import { encodeToolChoice } from './tool-choice.ts';
import { encodeTools } from './tools-encode.ts';

/** What every form of a response says, from `response.created` to the end; what changes stands elsewhere. */
export interface Envelope {
  id: string;
  /** The answer came in another protocol. */
  isForeign: boolean;
  /** In the order in which they are written. `status`, `output` and the like go over them. */
  fields: JsonObject;
}

export function encodeEnvelope(message: MessageStart['message'], context: CodecContext): Envelope {
  const foreign = isForeign(message, PROTOCOL, context);
  const id = foreign ? encodeId(message.id) : message.id || context.newId('resp_');
  return {
    id,
    isForeign: foreign,
    fields: {
      id,
      object: 'response',
      created_at: Math.floor(message.created ?? context.now()),
      status: 'in_progress',
      error: null,
      incomplete_details: null,
      model: context.request?.model || message.model,
      output: [],
      ...(foreign && UNREPORTED),
      ...echo(context, foreign),
      ...encodeTier(message.service_tier, foreign, context),
      // No field of OpenAI's; servers of this protocol that have it get it back.
      ...(!foreign && message.system_fingerprint !== undefined && { system_fingerprint: message.system_fingerprint }),
      usage: null,
    },
  };
}

/** Required by the SDK's types or by the Open Responses schema; an upstream of another protocol reports none of them. */
const UNREPORTED = {
  access_programs: null,
  completed_at: null,
  frequency_penalty: 0,
  presence_penalty: 0,
  service_tier: 'default',
} as const satisfies JsonObject;

const encodeId = (id: string): string => (id.startsWith('resp_') ? id : `resp_${id.replace(/[^A-Za-z0-9_-]/g, '_')}`);

/** What the other protocols call the tiers. */
const SERVICE_TIERS: Record<string, string> = { standard: 'default', auto: 'auto', flex: 'flex', priority: 'priority' };

/** Null is not among the tiers that every client knows. */
export function encodeTier(tier: string | undefined, foreign: boolean, context: CodecContext): { service_tier?: string } {
  if (tier === undefined) return {};
  if (!foreign) return { service_tier: tier };
  const known = Object.hasOwn(SERVICE_TIERS, tier) ? SERVICE_TIERS[tier] : undefined;
  if (known !== undefined) return { service_tier: known };
  drop(context, { path: '/service_tier', feature: 'service_tier', message: `OpenAI Responses has no service tier ${tier}` });
  return {};
}

const UNASKED: CanonicalRequest = { model: '', messages: [], parameters: {} };

/** A response repeats what was asked; the defaults of the API where nothing was. */
function echo(context: CodecContext, foreign: boolean): JsonObject {
  const { request = UNASKED } = context;
  const { parameters, state, tools = [] } = request;
  const kept = objectOf(request.extensions?.[PROTOCOL]);
  // OpenAI reports the default where nothing was requested; what an upstream of this protocol left out is not known.
  const unset = foreign ? 1 : null;
  const quiet: CodecContext = { ...context, note: () => {}, policy: {} };
  const { text = {} } = encodeText(request, objectOf(kept['text']), quiet);
  return {
    background: state?.background ?? false,
    instructions: encodeSystem(request.system ?? [], false).instructions ?? null,
    max_output_tokens: parameters.max_tokens ?? null,
    max_tool_calls: parameters.max_tool_calls ?? null,
    metadata: request.metadata ?? {},
    parallel_tool_calls: request.parallel_tool_use ?? true,
    previous_response_id: state?.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache?.key ?? null,
    reasoning: {
      effort: null,
      summary: null,
      ...objectOf(encodeThinking(request.thinking, kept['reasoning'], quiet)['reasoning']),
    },
    safety_identifier: request.user_id ?? null,
    store: request.store ?? false,
    temperature: parameters.temperature ?? unset,
    text: { format: { type: 'text' }, ...objectOf(text) },
    tool_choice: request.tool_choice ? encodeToolChoice(request.tool_choice, tools, kept['tool_choice']) : 'auto',
    tools: encodeTools(tools, true).map(completeTool),
    top_logprobs: parameters.top_logprobs ?? 0,
    top_p: parameters.top_p ?? unset,
    truncation: request.truncation ?? 'disabled',
    user: null,
  };
}

/** Schemas require these fields of an echoed function, also where the request left them out. */
const completeTool = (tool: JsonObject): JsonObject =>
  tool['type'] === 'function' ? { description: null, parameters: null, strict: false, ...tool } : tool;

/** What the decoder kept of a response of this protocol: it knows better than the request what was asked. */
export function keptEnvelope(extensions: Extensions | undefined): JsonObject {
  const { finish_reason: _, late_items: __, ...fields } = objectOf(extensions?.[PROTOCOL]);
  return fields;
}
