import type { JsonObject } from '../../accumulate/overlay.ts';
import type { OutputFormat } from '../../canonical/request.ts';
import type { CodecContext } from '../shared/codec.ts';
import { expectBoolean, expectObject, expectText, optional } from '../shared/expect.ts';
import { namedSchema } from '../shared/openai-target.ts';
import { listOf, objectOf, textOf } from '../shared/read.ts';
import { unknownWithin } from './fields.ts';

interface Decoded {
  format?: OutputFormat;
  /** What of `response_format` is not mapped: a format that only some server knows, or fields of its own. */
  rest?: JsonObject;
}

const FORMAT_FIELDS = new Set(['type', 'json_schema']);
const SCHEMA_FIELDS = new Set(['name', 'description', 'schema', 'strict']);

export function decodeOutputFormat(value: unknown): Decoded {
  const format = optional(value, 'response_format', expectObject);
  if (!format) return {};
  const type = expectText(format['type'], 'response_format.type');
  if (type !== 'json_object' && type !== 'json_schema' && type !== 'text') return { rest: format };
  const rest = unknownWithin(format, FORMAT_FIELDS, 'json_schema', SCHEMA_FIELDS);
  const kept = Object.keys(rest).length > 0 && { rest };
  if (type === 'text') return {};
  return { format: type === 'json_object' ? { type } : decodeSchema(format), ...kept };
}

function decodeSchema(format: JsonObject): OutputFormat {
  const at = 'response_format.json_schema';
  const body = expectObject(format['json_schema'], at);
  const name = optional(body['name'], `${at}.name`, expectText);
  const description = optional(body['description'], `${at}.description`, expectText);
  const strict = optional(body['strict'], `${at}.strict`, expectBoolean);
  return {
    type: 'json_schema',
    json_schema: {
      schema: optional(body['schema'], `${at}.schema`, expectObject) ?? {},
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(strict !== undefined && { strict }),
    },
  };
}

interface Encoded {
  response_format?: JsonObject;
  /** What has to be said in words. */
  hint?: string;
}

/** A server without schemas is asked for JSON, and told the schema. */
export function encodeOutputFormat(format: OutputFormat | undefined, kept: JsonObject, context: CodecContext): Encoded {
  if (!format) return kept['type'] === undefined ? {} : { response_format: kept };
  if (format.type === 'json_object') return { response_format: { ...kept, type: 'json_object' }, hint: 'Respond in JSON.' };
  const { schema } = format.json_schema;
  if (context.profile.json_schema) {
    const json_schema = { ...objectOf(kept['json_schema']), ...namedSchema(format.json_schema, context) };
    return { response_format: { ...kept, type: 'json_schema', json_schema } };
  }
  const message = 'this provider takes no schema of the answer; it is asked for JSON and told the schema';
  context.note({ code: 'APPROXIMATED', path: '/output_format', feature: 'output_format.json_schema', message });
  return {
    response_format: { type: 'json_object' },
    hint: `Respond in JSON that matches this schema: ${JSON.stringify(schema)}`,
  };
}

/** The API refuses `json_object` unless some message says the word; the schema has to be said in any case. */
export function addHint(messages: JsonObject[], hint: string, context: CodecContext): JsonObject[] {
  const isSchema = hint.includes('schema');
  if (
    isSchema
      ? messages.some((message) => textIn(message).includes(hint))
      : messages.some((message) => /json/i.test(textIn(message)))
  )
    return messages;
  if (!isSchema)
    context.note({
      code: 'REPAIRED',
      path: '/output_format',
      feature: 'output_format.json_word',
      message: 'no message said the word JSON; the system does now',
    });
  const [first, ...rest] = messages;
  if (first?.['role'] !== 'system' && first?.['role'] !== 'developer')
    return [{ role: context.profile.system_role, content: hint }, ...messages];
  const { content } = first;
  const extended = Array.isArray(content) ? [...content, { type: 'text', text: hint }] : `${textOf(content)}\n\n${hint}`;
  return [{ ...first, content: extended }, ...rest];
}

function textIn({ content }: JsonObject): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(objectOf(part)['text']))
    .join('\n');
}
