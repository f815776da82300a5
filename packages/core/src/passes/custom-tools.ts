import type { CanonicalTool } from '../canonical/request.ts';

/** A custom tool for a target that knows none: a function with one text, and what the tool says about its grammar. */
export function asFunction(tool: CanonicalTool): CanonicalTool {
  const { kind: _, format, ...rest } = tool;
  const grammar =
    format?.type === 'grammar' ? { description: `Text by this ${format.syntax} grammar:\n${format.definition}` } : {};
  const input_schema = { type: 'object', properties: { input: { type: 'string', ...grammar } }, required: ['input'] };
  return { ...rest, input_schema };
}
