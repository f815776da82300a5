import type { JsonSchema } from '../../canonical/protocol.ts';
import type { OutputFormat } from '../../canonical/request.ts';
import { approximate, type CodecContext } from './codec.ts';

type Format = Extract<OutputFormat, { type: 'json_schema' }>['json_schema'];

/** The schema of an answer where only the schema itself can say what the answer is. Its name is a label, and no part of the answer. */
export function describedSchema({ schema, description }: Format, context: CodecContext): JsonSchema {
  if (description === undefined || schema['description'] === description) return schema;
  approximate(context, {
    path: '/output_format/json_schema/description',
    feature: 'output_format.description',
    message: 'the description of the answer stands in its schema',
  });
  const own = schema['description'];
  return { ...schema, description: typeof own === 'string' && own !== '' ? `${description}\n\n${own}` : description };
}
