import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, OutputFormat } from '../../canonical/request.ts';
import type { CodecContext } from '../shared/codec.ts';
import { expectBoolean, expectObject, expectText, optional } from '../shared/expect.ts';
import { namedSchema } from '../shared/openai-target.ts';
import { listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';

type TextOptions = Pick<CanonicalRequest, 'output_format' | 'verbosity'>;

const FORMAT_FIELDS = new Set(['type', 'name', 'description', 'schema', 'strict']);

/** `text.format` and `text.verbosity`. */
export function decodeText(value: unknown): TextOptions {
  const text = optional(value, 'text', expectObject) ?? {};
  const format = optional(text['format'], 'text.format', expectObject);
  const output = format && decodeFormat(format);
  const { verbosity } = text;
  return { ...(output && { output_format: output }), ...(isVerbosity(verbosity) && { verbosity }) };
}

const isVerbosity = (word: unknown): word is NonNullable<CanonicalRequest['verbosity']> =>
  word === 'low' || word === 'medium' || word === 'high';

/** Flat: what chat nests in `json_schema` stands beside the type. */
function decodeFormat(format: JsonObject): OutputFormat | undefined {
  const type = expectText(format['type'], 'text.format.type');
  if (type === 'json_object') return { type };
  if (type !== 'json_schema') return undefined;
  const name = optional(format['name'], 'text.format.name', expectText);
  const description = optional(format['description'], 'text.format.description', expectText);
  const strict = optional(format['strict'], 'text.format.strict', expectBoolean);
  return {
    type,
    json_schema: {
      schema: optional(format['schema'], 'text.format.schema', expectObject) ?? {},
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(strict !== undefined && { strict }),
    },
  };
}

/** Plain text is what is meant when nothing is said. */
const MAPPED = new Set<unknown>(['text', 'json_object', 'json_schema']);

/** What of `text` is not mapped, in its own shape: it goes back as it came. */
export function keptText(value: unknown): JsonObject {
  const text = objectOf(value);
  const format = objectOf(text['format']);
  const isMapped = MAPPED.has(format['type']);
  const unknownFormat = isMapped ? unknownFields(format, FORMAT_FIELDS) : text['format'];
  const rest = {
    ...unknownFields(text, new Set(['format', ...(isVerbosity(text['verbosity']) ? ['verbosity'] : [])])),
    ...(unknownFormat !== undefined && unknownFormat !== null && { format: unknownFormat }),
  };
  // An empty object is kept too: the client sent it.
  return Object.keys(rest).length > 0 || isEmpty(value) ? { text: rest } : {};
}

const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

export function encodeText({ output_format: format, verbosity }: TextOptions, sent: unknown, context: CodecContext): JsonObject {
  const kept = objectOf(sent);
  const text = {
    ...kept,
    ...(format && { format: { ...objectOf(kept['format']), ...encodeFormat(format, context) } }),
    ...(verbosity && { verbosity }),
  };
  return Object.keys(text).length > 0 || sent !== undefined ? { text } : {};
}

function encodeFormat(format: OutputFormat, context: CodecContext): JsonObject {
  if (format.type === 'json_object') return { type: 'json_object' };
  const { name, description, schema, strict } = namedSchema(format.json_schema, context);
  return {
    type: 'json_schema',
    name,
    ...(description !== undefined && { description }),
    schema,
    ...(strict !== undefined && { strict }),
  };
}

const HINT = 'Respond in JSON.';

/** The API refuses `json_object` unless an item of the input says the word; `instructions` do not count. */
export function withJsonWord(input: JsonObject[], format: OutputFormat | undefined, context: CodecContext): JsonObject[] {
  if (format?.type !== 'json_object' || input.some((item) => /json/i.test(textIn(item)))) return input;
  const message = 'nobody said the word JSON; a developer message does now';
  context.note({ code: 'REPAIRED', path: '/output_format', feature: 'output_format.json_word', message });
  return [{ type: 'message', role: 'developer', content: [{ type: 'input_text', text: HINT }] }, ...input];
}

const textIn = ({ content }: JsonObject): string =>
  listOf(content)
    .map((part) => textOf(objectOf(part)['text']))
    .join('\n');
