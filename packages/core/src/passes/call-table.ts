import type { CanonicalRequest } from '../canonical/request.ts';
import { type Called, calledIn, keyOf, sentNames } from './call-names.ts';
import type { ToolRules } from './rules.ts';
import { isObjectRoot } from './schema/root.ts';

/** What the client knows a tool by, when it was sent under another name or in another form. */
export interface Answered {
  name: string;
  namespace?: string;
  /** `custom`: a text, sent as `{input: text}`; `wrapped`: any value, sent as `{input: value}`. */
  form: 'plain' | 'custom' | 'wrapped';
}

const NOTHING: ReadonlyMap<string, Answered> = new Map();

/** Most questions do not, and each asks for the table. */
const callsAnything = ({ tools, tool_choice: choice, messages }: CanonicalRequest): boolean =>
  Boolean(tools || choice) ||
  messages.some(({ content }) => content.some(({ type }) => type === 'tool_use' || type === 'tool_result'));

/** The way back for answers: the tools of the client by the names under which they were sent. Those that stayed as they were are not in it. */
export function callTable(request: CanonicalRequest, rules: ToolRules): ReadonlyMap<string, Answered> {
  if (!callsAnything(request)) return NOTHING;
  const names = sentNames(request, rules);
  const wrapped = new Set<Called>(rules.objectRoot ? request.tools?.filter((tool) => !isObjectRoot(tool.input_schema)) : []);
  const table = new Map<string, Answered>();
  for (const called of calledIn(request)) {
    const { name, namespace, kind } = called;
    const sent = names.get(keyOf(called, rules)) ?? name;
    const isCustom = kind === 'custom' && !rules.custom;
    const form = isCustom ? 'custom' : wrapped.has(called) ? 'wrapped' : 'plain';
    if (table.has(sent) || (sent === name && form === 'plain')) continue;
    table.set(sent, { name, ...(namespace !== undefined && { namespace }), form });
  }
  return table;
}
