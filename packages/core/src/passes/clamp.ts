import type { CanonicalRequest, RequestParameters } from '../canonical/request.ts';
import type { Bounds, Rules } from './rules.ts';

type ClampRules = Pick<Rules, 'note' | 'drop' | 'bounds' | 'maxStop' | 'maxTools'>;

/** Numbers into their bounds, and lists to their length. */
export function clamp(request: CanonicalRequest, rules: ClampRules): CanonicalRequest {
  const numbers = clampNumbers(request.parameters, rules);
  const stop = clampStop(request.parameters, rules);
  const tools = clampTools(request, rules);
  if (!numbers && !stop && !tools) return request;
  return { ...request, parameters: { ...request.parameters, ...numbers, ...stop }, ...tools };
}

function clampNumbers(parameters: RequestParameters, rules: ClampRules): Record<string, number> | undefined {
  let clamped: Record<string, number> | undefined;
  for (const key in rules.bounds) {
    const name = key as keyof Bounds; // a loop knows keys as texts only
    const value = parameters[name];
    const [least, most] = rules.bounds[name] ?? ANYTHING;
    if (typeof value !== 'number' || (value >= least && value <= most)) continue;
    const nearest = value < least ? least : most;
    clamped = { ...clamped, [name]: nearest };
    tell(name, `${name} ${value} is outside ${least} to ${most}; ${nearest} is sent`, rules);
  }
  return clamped;
}

const ANYTHING = [-Infinity, Infinity] as const;

function clampStop(
  { stop_sequences: stop }: RequestParameters,
  rules: ClampRules,
): Pick<RequestParameters, 'stop_sequences'> | undefined {
  if (!stop || stop.length <= rules.maxStop) return undefined;
  tell('stop_sequences', `only ${rules.maxStop} of ${stop.length} stop sequences are sent`, rules);
  return { stop_sequences: stop.slice(0, rules.maxStop) };
}

/** Those that are chosen from, and the first of the others. */
function clampTools(
  { tools = [], tool_choice: choice }: CanonicalRequest,
  rules: ClampRules,
): Pick<CanonicalRequest, 'tools' | 'tool_choice'> | undefined {
  if (tools.length <= rules.maxTools) return undefined;
  rules.drop({ path: '/tools', feature: 'tools', message: `only ${rules.maxTools} of ${tools.length} tools are sent` });
  const chosen = new Set(choice?.type === 'tool' ? [choice.name] : choice?.allowed_tools);
  const byRank = tools.toSorted((a, b) => Number(chosen.has(b.name)) - Number(chosen.has(a.name)));
  const isKept = new Set(byRank.slice(0, rules.maxTools));
  const lost = new Set(byRank.slice(rules.maxTools).map(({ name }) => name));
  const kept = tools.filter((tool) => isKept.has(tool));
  if (!choice || choice.type === 'tool' || !choice.allowed_tools) return { tools: kept };
  return { tools: kept, tool_choice: { ...choice, allowed_tools: choice.allowed_tools.filter((name) => !lost.has(name)) } };
}

const tell = (name: string, message: string, rules: ClampRules): void =>
  rules.note({ code: 'CLAMPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });
