import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { type CodecContext, drop, missing, type WireRequest } from '../shared/codec.ts';
import { expectObject, expectShallow, optional } from '../shared/expect.ts';
import { textOf, unknownFields } from '../shared/read.ts';
import { decodeContents, expectContents, partsOf } from './contents-decode.ts';
import { decodeParameters, keptConfig } from './generation-config.ts';
import { modelOf, placeOf } from './interface.ts';
import { keep } from './kept.ts';
import { decodeOptions, keptOptions, OPTION_FIELDS } from './options.ts';
import { decodeOutputFormat } from './output-format.ts';
import { PLACES } from './pointers.ts';
import { decodeThinking } from './thinking.ts';
import { decodeToolConfig } from './tool-config.ts';
import { decodeTools } from './tools-decode.ts';
import { camelKeys, camelObject } from './wire.ts';

/** What the path says and the body does not. */
export interface Place {
  model?: string | undefined;
  stream?: boolean;
}

/** A request as it came in: the model and whether to stream stand in the path. */
export function decodeRequest({ path, body }: WireRequest, context: CodecContext): CanonicalRequest {
  const stream = placeOf(path)?.verb === 'streamGenerateContent';
  return decodeRequestBody(body, context, { model: modelOf(path), ...(stream && { stream }) });
}

export function decodeRequestBody(wire: unknown, context: CodecContext, place: Place = {}): CanonicalRequest {
  const body = camelKeys(expectObject(wire, 'body'));
  const contents = expectContents(body['contents']);
  expectShallow(body);
  const config = camelKeys(optional(body['generationConfig'], 'generationConfig', expectObject) ?? {});
  const { system, rest } = decodeSystem(body['systemInstruction'], context);
  const tools = decodeTools(body['tools'], context);
  const { choice, rest: toolConfig } = decodeToolConfig(body['toolConfig']);
  const format = decodeOutputFormat(config, context);
  const thinking = decodeThinking(config['thinkingConfig'], context);
  const generationConfig = keptConfig(config);
  const request: CanonicalRequest = {
    model: modelName(place, body),
    ...(system.length > 0 && { system }),
    messages: decodeContents(contents, context),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(config),
    ...(format && { output_format: format }),
    ...(thinking && { thinking }),
    ...(place.stream !== undefined && { stream: place.stream }),
    ...decodeOptions(body, config),
    ...keep({
      ...unknownFields(body, MAPPED),
      ...keptOptions(body),
      ...(generationConfig && { generationConfig }),
      ...(toolConfig && { toolConfig }),
      ...(rest && { systemInstruction: rest }),
    }),
  };
  return at('', request, context, PLACES);
}

const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  ...OPTION_FIELDS,
]);

/** The path names the model; a body that says it too may be one that was not sent yet. */
function modelName({ model }: Place, body: JsonObject): string {
  const name = model || textOf(body['model']).replace(/^models\//, '');
  if (name === '') throw missing('model');
  return name;
}

interface System {
  system: SystemBlock[];
  /** What the content says beside its parts; its role means nothing. */
  rest?: JsonObject | undefined;
}

const SYSTEM_FIELDS: ReadonlySet<string> = new Set(['parts']);
const TEXT_FIELDS: ReadonlySet<string> = new Set(['text', 'thought']);

/** A content, or a text. Only its texts are instructions. */
function decodeSystem(value: unknown, context: CodecContext): System {
  if (value === undefined || value === null) return { system: [] };
  const content = typeof value === 'string' ? { parts: [value] } : camelKeys(expectObject(value, 'systemInstruction'));
  const system = partsOf(content, 'systemInstruction').flatMap((item, i): SystemBlock[] => {
    const part = typeof item === 'string' ? { text: item } : camelObject(item);
    const text = textOf(part['text']);
    const path = `/systemInstruction/parts/${i}`;
    if (typeof part['text'] !== 'string') drop(context, { path, feature: 'system', message: 'an instruction that is no text' });
    return text === '' ? [] : [at(path, { type: 'text', text, ...keep(unknownFields(part, TEXT_FIELDS)) }, context)];
  });
  return { system, rest: unknownFields(content, SYSTEM_FIELDS) };
}
