import { isFilledText, isObject, isSet } from '../../accumulate/overlay.ts';
import { ABSENT_IDS } from '../../accumulate/tool-call-delta.ts';
import type { Report } from '../../doctor/rules.ts';
import type { WireChoice } from './wire.ts';

/** Names the departures of a choice from the chunk shape. Reads only: what is done about them is decided elsewhere. */
export function inspectChoice(choice: WireChoice, finish: string | null, offset: number, report: Report): void {
  const { delta, message, finish_reason: next } = choice;
  if (!isSet(delta) && message === undefined)
    report(typeof choice.text === 'string' ? 'chat/text-completion' : 'chat/delta-missing', offset);
  if (next === '') report('chat/finish-empty', offset);
  else if (finish !== null && typeof next === 'string') report('chat/finish-repeated', offset);
  else if (finish !== null && isObject(delta) && (delta['content'] || delta['tool_calls']))
    report('chat/content-after-finish', offset);
  if (!isObject(delta)) return;
  const { role, reasoning_content, reasoning } = delta;
  if (role === '' || role === null) report('chat/role-blank', offset);
  if (isFilledText(reasoning_content) && isFilledText(reasoning)) report('chat/reasoning-twice', offset);
}

/** Names the departures of one tool-call delta. */
export function inspectCall(entry: unknown, offset: number, report: Report): void {
  if (!isObject(entry)) return;
  const { id, index, type, function: body } = entry;
  if (ABSENT_IDS.has(typeof id === 'string' ? id.trim() : id)) report('chat/tool-id-empty', offset);
  else if (typeof id === 'number') report('chat/tool-id-number', offset);
  if (!isSet(index)) report('chat/tool-index-missing', offset);
  else if (typeof index === 'string') report('chat/tool-index-string', offset);
  else if (typeof index === 'number' && (index < 0 || !Number.isInteger(index))) report('chat/tool-index-wild', offset);
  if (typeof type === 'string' && type !== type.toLowerCase()) report('chat/tool-type-case', offset);
  if (body === null) report('chat/tool-function-null', offset);
  else if (isObject(body)) inspectFunction(body, offset, report);
}

function inspectFunction(body: Record<string, unknown>, offset: number, report: Report): void {
  const { name, arguments: text } = body;
  if (name === '' || name === null || name === 'null') report('chat/tool-name-empty', offset);
  if (text === null) report('chat/tool-args-null', offset);
  else if (typeof text === 'object') report('chat/tool-args-object', offset);
}
