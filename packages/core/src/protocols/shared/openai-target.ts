import type { ProtocolId } from '../../canonical/protocol.ts';
import type { OutputFormat } from '../../canonical/request.ts';
import { fitsStrictMode } from '../../passes/schemas.ts';
import { approximate, type CodecContext } from './codec.ts';
import { DEFAULT_SCHEMA_NAME } from './described-schema.ts';

// What other protocols do by themselves and OpenAI does not.

/** These continue a trailing assistant message, and keep to every schema. */
const OTHERS: ReadonlySet<ProtocolId | undefined> = new Set(['anthropic-messages', 'gemini']);

/** Whether the protocol of the source continues a trailing assistant message. */
export const continuesPrefill = ({ source }: CodecContext): boolean => OTHERS.has(source);

type Format = Extract<OutputFormat, { type: 'json_schema' }>['json_schema'];

/** The schema of a response with the name that OpenAI requires, and in strict mode where the source keeps to every schema. */
export function namedSchema(format: Format, context: CodecContext): Format & { name: string } {
  const { name, strict, ...rest } = format;
  if (name === undefined)
    approximate(context, {
      path: '/output_format',
      feature: 'output_format.name',
      message: `the target requires a schema name; "${DEFAULT_SCHEMA_NAME}" is sent`,
    });
  const kept = strict ?? strictOf(format, context);
  return { name: name ?? DEFAULT_SCHEMA_NAME, ...rest, ...(kept !== undefined && { strict: kept }) };
}

function strictOf({ schema }: Format, context: CodecContext): true | undefined {
  if (!OTHERS.has(context.source)) return undefined;
  if (fitsStrictMode(schema)) return true;
  approximate(context, {
    path: '/output_format',
    feature: 'output_format.strict',
    message: 'the schema does not fit strict mode of OpenAI and is sent without it; the response may deviate from the schema',
  });
  return undefined;
}
