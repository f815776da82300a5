import type { JsonSchema } from '../../canonical/protocol.ts';
import type { OutputFormat } from '../../canonical/request.ts';
import { approximate, type CodecContext } from './codec.ts';

type Format = Extract<OutputFormat, { type: 'json_schema' }>['json_schema'];

/** What a schema is called that has no name where one is required. */
export const DEFAULT_SCHEMA_NAME = 'response';

/** The schema of a response where only the schema itself can describe it. A name is a label without effect: strict mode does not refuse it. */
export function describedSchema({ schema, name, description }: Format, context: CodecContext): JsonSchema {
  if (name !== undefined && name !== DEFAULT_SCHEMA_NAME)
    context.note({
      code: 'DROPPED',
      path: '/output_format/json_schema/name',
      feature: 'output_format.name',
      message: `schema name "${name}" is not supported by the target; dropped`,
    });
  if (description === undefined || schema['description'] === description) return schema;
  approximate(context, {
    path: '/output_format/json_schema/description',
    feature: 'output_format.description',
    message: 'the description of the answer stands in its schema',
  });
  const own = schema['description'];
  return { ...schema, description: typeof own === 'string' && own !== '' ? `${description}\n\n${own}` : description };
}
