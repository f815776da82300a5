import type { CanonicalTool } from '../../packages/core/src/canonical/request.ts';
import { expectList, expectObject, expectText, objectOrEmpty } from '../../packages/core/src/codec/read.ts';
import type { JsonObject } from '../../packages/core/src/json/json.ts';

export const decodeTools = (tools: unknown): CanonicalTool[] =>
  expectList(tools, 'tools').map((value, i) => {
    const { name, schema } = expectObject(value, `tools[${i}]`);
    return { name: expectText(name, `tools[${i}].name`), input_schema: objectOrEmpty(schema) };
  });

export const encodeTools = (tools: readonly CanonicalTool[]): JsonObject[] =>
  tools.map(({ name, input_schema: schema }) => ({ name, ...(schema && { schema }) }));
