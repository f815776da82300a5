import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import { textOf } from '../shared/read.ts';
import { camelKeys, type WireResponse } from './wire.ts';

/** Cloud Code and Antigravity put every response, whole or fragment, into `{"response": …, "traceId": …}`. */
export function isWrapped(payload: JsonObject): boolean {
  return isObject(payload['response']) && payload['candidates'] === undefined && payload['type'] === undefined;
}

/** Whether a payload is a GenerateContentResponse: fields that no other answer of this API has. */
export function isResponse(payload: JsonObject): boolean {
  const { candidates, promptFeedback, responseId, modelVersion }: WireResponse = camelKeys(payload);
  return Array.isArray(candidates) || isObject(promptFeedback) || textOf(responseId) !== '' || textOf(modelVersion) !== '';
}

export const hasUsage = (payload: JsonObject): boolean => isObject(camelKeys(payload)['usageMetadata']);

interface Envelope {
  id: string;
  model: string;
  created?: number;
}

/** Who answered, and when. The first fragment has it; most repeat it. */
export function decodeEnvelope({ responseId, modelVersion, createTime }: WireResponse): Envelope {
  const created = decodeTime(createTime);
  return { id: textOf(responseId), model: textOf(modelVersion), ...(created !== undefined && { created }) };
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|([+-]\d\d):(\d\d))$/;

/** Unix seconds of `2026-05-19T14:59:42.780296Z`, by the civil calendar: core has no Date. */
function decodeTime(value: unknown): number | undefined {
  const match = RFC_3339.exec(textOf(value));
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  const zone = zoneHour * 60 + (match[7]?.startsWith('-') ? -zoneMinute : zoneMinute);
  return daysFromEpoch(year, month, day) * 86_400 + hour * 3600 + (minute - zone) * 60 + second;
}

/** Years begin in March here, so that the leap day is the last of the year. */
function daysFromEpoch(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}
