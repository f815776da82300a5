import { isObject, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type { OutputFormat } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { describedSchema } from '../shared/described-schema.ts';
import { expectObject, optional, pointerOf } from '../shared/expect.ts';
import { objectOf } from '../shared/read.ts';

/** `output_config.format`, or `output_format` as the beta called it. A type of the future goes back as it came. */
export function decodeOutputFormat(body: JsonObject, context: Pick<CodecContext, 'trace'> = {}): OutputFormat | undefined {
  const config = optional(body['output_config'], 'output_config', expectObject) ?? {};
  const current = optional(config['format'], 'output_config.format', expectObject);
  const format = current ?? optional(body['output_format'], 'output_format', expectObject);
  if (format?.['type'] !== 'json_schema') return undefined;
  const param = current ? 'output_config.format' : 'output_format';
  const schema = expectObject(format['schema'], `${param}.schema`);
  const place = pointerOf(param);
  return at(place, { type: 'json_schema' as const, json_schema: { schema } }, context, { json_schema: place });
}

/** What of both places has no place in the canonical form. */
export function keptFormat(body: JsonObject): { current?: unknown; old?: JsonObject } {
  const { format } = objectOf(body['output_config']);
  const old = body['output_format'];
  const isRead = (value: unknown): boolean => objectOf(value)['type'] === 'json_schema';
  const isOldRead = !isObject(format) && isRead(old);
  return {
    ...(isObject(format) && !isRead(format) && { current: format }),
    ...(isObject(old) && !isOldRead && { old }),
  };
}

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
  for (const place of placesOf(path, context))
    approximate(context, {
      path: place,
      feature: 'output_format.json_schema',
      message: 'the schema is told in the instructions',
    });
  return { hint: `${JSON_ONLY} It must match this JSON schema:\n${writeJson(schema) ?? '{}'}` };
}

/** Gemini has the schema beside the type, not below it: a note for each. */
function placesOf(path: string, { locate = (same) => same }: CodecContext): string[] {
  const schema = `${path}/json_schema/schema`;
  return locate(schema).startsWith(locate(path)) ? [path] : [path, schema];
}
