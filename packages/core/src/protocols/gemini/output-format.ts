import { isObject, type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, OutputFormat } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { describedSchema } from '../shared/described-schema.ts';
import { schemaOf } from './tools-decode.ts';

const JSON_TYPE = 'application/json';
const SCHEMAS = ['responseJsonSchema', '_responseJsonSchema', 'responseSchema'] as const;

/** These are mapped, and kept: to Google itself they go back in its own words. */
export const FORMAT_FIELDS: readonly string[] = ['responseMimeType', ...SCHEMAS];

/** Other types than JSON (`text/x.enum`) are only Google's. */
export function decodeOutputFormat(config: JsonObject, context: Pick<CodecContext, 'trace'> = {}): OutputFormat | undefined {
  if (config['responseMimeType'] !== JSON_TYPE) return undefined;
  const json = { ...config, responseJsonSchema: config['responseJsonSchema'] ?? config['_responseJsonSchema'] };
  const schema = schemaOf(json, 'responseJsonSchema', 'responseSchema', 'generationConfig');
  if (!schema) return { type: 'json_object' };
  const field = SCHEMAS.find((name) => config[name] !== undefined);
  return at(PLACE, { type: 'json_schema' as const, json_schema: { schema } }, context, {
    'json_schema/schema': `/generationConfig/${field}`,
  });
}

const PLACE = '/generationConfig/responseMimeType';

/** Whether the format is still what a client asked for in this protocol. */
export const isOwnFormat = ({ output_format: format }: CanonicalRequest, kept: JsonObject): boolean =>
  kept['responseMimeType'] !== undefined && sameJson(decodeOutputFormat(kept), format);

interface Encoded {
  config: JsonObject;
  /** What has to be said in words. */
  hint?: string;
}

/** `own`: the kept fields, when they still say it. Before Gemini 3 a model that may call functions cannot be held to JSON (P62). */
export function encodeOutputFormat(
  format: OutputFormat | undefined,
  own: JsonObject | undefined,
  hasFunctions: boolean,
  context: CodecContext,
): Encoded {
  const { tools_with_json_output: withTools, json_schema_params: isJson } = context.profile;
  if (format && hasFunctions && !withTools && !own) return encodeInWords(format, context);
  if (own)
    return {
      config: Object.fromEntries(FORMAT_FIELDS.filter((field) => own[field] !== undefined).map((field) => [field, own[field]])),
    };
  if (!format) return { config: {} };
  if (format.type === 'json_object') return { config: { responseMimeType: JSON_TYPE } };
  const schema = describedSchema(format.json_schema, context);
  const isSaid = isObject(schema) && Object.keys(schema).length > 0;
  return {
    config: { responseMimeType: JSON_TYPE, ...(isSaid && { [isJson ? 'responseJsonSchema' : 'responseSchema']: schema }) },
  };
}

function encodeInWords(format: OutputFormat, context: CodecContext): Encoded {
  const message = 'this model takes no format of the answer beside functions; it is asked in words';
  approximate(context, { path: '/output_format', feature: 'output_format', message });
  const hint =
    format.type === 'json_object'
      ? 'Respond in JSON.'
      : `Respond in JSON that matches this schema: ${JSON.stringify(describedSchema(format.json_schema, context))}`;
  return { config: {}, hint };
}
