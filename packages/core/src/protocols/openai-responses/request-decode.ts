import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { type CodecContext, missing, type WireRequest } from '../shared/codec.ts';
import { expectBoolean, expectName, expectObject, expectShallow, expectText, optional } from '../shared/expect.ts';
import { objectOf, unknownFields } from '../shared/read.ts';
import { decodeInput, expectInput } from './input-decode.ts';
import { PROTOCOL } from './kept.ts';
import { decodeOptions } from './options.ts';
import { decodeParameters, PARAMETER_FIELDS } from './parameters.ts';
import { placesIn } from './pointers.ts';
import { decodeText, keptText } from './text-options.ts';
import { decodeThinking } from './thinking.ts';
import { decodeToolChoice, keptToolChoice } from './tool-choice.ts';
import { decodeInputTools, decodeTools } from './tools-decode.ts';

export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context);
}

export function decodeRequestBody(wire: unknown, context: CodecContext): CanonicalRequest {
  const body = expectObject(wire, 'body');
  const list = inputOf(body);
  expectShallow(body);
  const { system, messages } = decodeInput(list, { context });
  const declared = decodeTools(body['tools'], 'tools', context);
  const tools = [...declared, ...decodeInputTools(list, declared, context)];
  const choice = decodeToolChoice(body['tool_choice']);
  const thinking = decodeThinking(body['reasoning'], context);
  const options = decodeOptions(body, context);
  const parallel = optional(body['parallel_tool_calls'], 'parallel_tool_calls', expectBoolean);
  const instructed = [...decodeInstructions(body['instructions'], context), ...system];
  const request: CanonicalRequest = {
    model: modelOf(body),
    ...(instructed.length > 0 && { system: instructed }),
    messages,
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(body, options.include ?? [], context),
    ...decodeText(body['text']),
    ...(parallel !== undefined && { parallel_tool_use: parallel }),
    ...(thinking && { thinking }),
    ...decodeStreaming(body),
    ...options,
    // Always there: it also says that the request came in this protocol.
    extensions: {
      [PROTOCOL]: { ...unknownFields(body, MAPPED), ...keptText(body['text']), ...keptToolChoice(body['tool_choice'], tools) },
    },
  };
  return at('', request, context, placesIn(body));
}

/** A prompt that is stored there, or the conversation so far, can be all there is. */
function inputOf(body: JsonObject): readonly unknown[] {
  const { input, prompt, previous_response_id: previous, conversation } = body;
  if (input !== undefined && input !== null) return expectInput(input);
  if (prompt ?? previous ?? conversation) return [];
  throw missing('input');
}

/** A stored prompt names its own model. */
const modelOf = ({ model, prompt }: JsonObject): string =>
  prompt && (model === undefined || model === null) ? '' : expectName(model, 'model');

function decodeInstructions(value: unknown, context: CodecContext): SystemBlock[] {
  const text = optional(value, 'instructions', expectText);
  if (!text) return [];
  return [at('/instructions', { type: 'text', text, extensions: { [PROTOCOL]: { instructions: true } } }, context)];
}

/** Fields that have a place of their own. Everything else goes back as it came; the options and `reasoning` as long as they say the same. */
const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'stream',
  ...PARAMETER_FIELDS,
]);

function decodeStreaming(body: JsonObject): Pick<CanonicalRequest, 'stream' | 'stream_options'> {
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const padding = objectOf(optional(body['stream_options'], 'stream_options', expectObject))['include_obfuscation'];
  return {
    ...(stream !== undefined && { stream }),
    ...(typeof padding === 'boolean' && { stream_options: { include_obfuscation: padding } }),
  };
}
