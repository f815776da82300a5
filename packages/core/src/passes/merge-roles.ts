import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import type { Rules } from './rules.ts';

type MergeRules = Pick<Rules, 'alternate' | 'drop'>;

/** For targets where user and assistant must take turns: neighbours of one role become one message. Tool messages stay, and keep others apart. */
export function mergeRoles(request: CanonicalRequest, rules: MergeRules): CanonicalRequest {
  if (!rules.alternate) return request;
  const runs: { start: number; messages: CanonicalMessage[] }[] = [];
  request.messages.forEach((message, i) => {
    const run = runs.at(-1);
    const isNeighbour = run?.messages[0]?.role === message.role && (message.role === 'user' || message.role === 'assistant');
    if (run && isNeighbour) run.messages.push(message);
    else runs.push({ start: i, messages: [message] });
  });
  if (runs.length === request.messages.length) return request;
  return { ...request, messages: runs.flatMap(({ start, messages }) => merge(messages, start, rules)) };
}

/** One message has one name. */
function merge(run: readonly CanonicalMessage[], start: number, rules: MergeRules): CanonicalMessage[] {
  const [first, ...others] = run;
  if (!first || others.length === 0) return [...run];
  const content = run.flatMap((message) => message.content);
  const merged = { ...run.reduce((all, message) => Object.assign(all, message), { ...first }), content };
  const other = others.findIndex(({ name }) => name !== first.name);
  if (other < 0) return [merged];
  const path = `/messages/${start + 1 + other}`;
  rules.drop({ path, feature: 'messages.name', message: 'messages of several participants became one' });
  const { name: _, ...nameless } = merged;
  return [nameless];
}
