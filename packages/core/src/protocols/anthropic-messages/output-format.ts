import { isObject, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type { OutputFormat } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { describedSchema } from '../shared/described-schema.ts';
import { objectOf } from '../shared/read.ts';

/** `output_config.format`, or `output_format` as the beta called it. */
export function decodeOutputFormat(body: JsonObject, context: Pick<CodecContext, 'trace'> = {}): OutputFormat | undefined {
  const format = formatOf(body);
  if (format['type'] !== 'json_schema' || !isObject(format['schema'])) return undefined;
  const place = objectOf(body['output_config'])['format'] ? '/output_config/format' : '/output_format';
  return at(place, { type: 'json_schema' as const, json_schema: { schema: format['schema'] } }, context, { json_schema: place });
}

/** What of it has no place in the canonical form: a type of the future, whole. */
export function keptFormat(body: JsonObject): JsonObject | undefined {
  const format = formatOf(body);
  return Object.keys(format).length > 0 && !decodeOutputFormat(body) ? format : undefined;
}

const formatOf = (body: JsonObject): JsonObject => objectOf(objectOf(body['output_config'])['format'] ?? body['output_format']);

interface Encoded {
  format?: JsonObject;
  /** What the instructions have to say instead. */
  hint?: string;
}

const JSON_ONLY = 'Answer with one JSON object only, without any text around it.';

/** Models without structured outputs can only be asked for it. A forced tool would do more, but not beside thinking and other tools. */
export function encodeOutputFormat(format: OutputFormat | undefined, context: CodecContext): Encoded {
  if (!format) return {};
  const path = '/output_format';
  if (format.type === 'json_object') {
    approximate(context, { path, feature: 'output_format.json_object', message: 'JSON is asked for in the instructions' });
    return { hint: JSON_ONLY };
  }
  const schema = describedSchema(format.json_schema, context);
  if (context.profile.structured_outputs ?? context.source === 'anthropic-messages')
    return { format: { type: 'json_schema', schema } };
  const told = { path: `${path}/json_schema/schema`, feature: 'output_format.json_schema' };
  approximate(context, { ...told, message: 'the schema is told in the instructions' });
  return { hint: `${JSON_ONLY} It must match this JSON schema:\n${writeJson(schema) ?? '{}'}` };
}
