import type { CanonicalRequest, CanonicalTool, RequestParameters } from '../canonical/request.ts';
import type { Rules } from './rules.ts';

type ClampRules = Pick<Rules, 'note' | 'drop' | 'bounds' | 'maxStop' | 'maxTools'>;

/** Numbers into their bounds, and lists to their length. */
export function clamp(request: CanonicalRequest, rules: ClampRules): CanonicalRequest {
  const parameters = {
    ...request.parameters,
    ...clampNumbers(request.parameters, rules),
    ...clampStop(request.parameters, rules),
  };
  return { ...request, parameters, ...(request.tools && { tools: clampTools(request, request.tools, rules) }) };
}

function clampNumbers(parameters: RequestParameters, rules: ClampRules): Record<string, number> {
  const clamped: Record<string, number> = {};
  for (const [name, [least, most]] of Object.entries(rules.bounds)) {
    const value = parameters[name as keyof RequestParameters]; // the keys of Bounds are keys of the parameters
    if (typeof value !== 'number' || (value >= least && value <= most)) continue;
    clamped[name] = value < least ? least : most;
    tell(name, `${name} ${value} is outside ${least} to ${most}; ${clamped[name]} is sent`, rules);
  }
  return clamped;
}

function clampStop({ stop_sequences: stop }: RequestParameters, rules: ClampRules): Pick<RequestParameters, 'stop_sequences'> {
  if (!stop || stop.length <= rules.maxStop) return {};
  tell('stop_sequences', `only ${rules.maxStop} of ${stop.length} stop sequences are sent`, rules);
  return { stop_sequences: stop.slice(0, rules.maxStop) };
}

/** The first tools, and the one that must be called. */
function clampTools({ tool_choice: choice }: CanonicalRequest, tools: CanonicalTool[], rules: ClampRules): CanonicalTool[] {
  if (tools.length <= rules.maxTools) return tools;
  rules.drop({ path: '/tools', feature: 'tools', message: `only ${rules.maxTools} of ${tools.length} tools are sent` });
  const forced = choice?.type === 'tool' ? tools.findIndex(({ name }) => name === choice.name) : -1;
  const kept = tools.slice(0, rules.maxTools);
  const chosen = forced >= rules.maxTools ? tools[forced] : undefined;
  return chosen ? [...kept.slice(0, -1), chosen] : kept;
}

const tell = (name: string, message: string, rules: ClampRules): void =>
  rules.note({ code: 'CLAMPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });
