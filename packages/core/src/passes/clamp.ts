import type { CanonicalRequest, RequestParameters } from '../canonical/request.ts';
import type { Bounds, Rules } from './rules.ts';

type ClampRules = Pick<Rules, 'note' | 'refuse' | 'bounds' | 'maxStop' | 'maxTools'>;

/** Numbers into their bounds, and stop sequences to their number. Tools are never cut. */
export function clamp(request: CanonicalRequest, rules: ClampRules): CanonicalRequest {
  const numbers = clampNumbers(request.parameters, rules);
  const stop = clampStop(request.parameters, rules);
  checkTools(request, rules);
  if (!numbers && !stop) return request;
  return { ...request, parameters: { ...request.parameters, ...numbers, ...stop } };
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

/** Leaving out some would change what the model can do, without a word to the client. */
function checkTools({ tools = [] }: CanonicalRequest, rules: ClampRules): void {
  if (tools.length <= rules.maxTools) return;
  const message = `the provider accepts at most ${rules.maxTools} tools; the request has ${tools.length}`;
  rules.refuse({ path: '/tools', feature: 'tools', message });
}

const tell = (name: string, message: string, rules: ClampRules): void =>
  rules.note({ code: 'CLAMPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });
