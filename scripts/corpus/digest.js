import { mediaOf } from './classes.js';

/** What the library reads in a body, with every text replaced by its length: equal for a recording and for what its shape renders. */

/** Marks a text that is compared as it is. */
const KEPT = '\u0000';

/**
 * @param {{core: typeof import('@sluice/core'), engine: typeof import('@sluice/core/engine')}} library
 * @param {string} protocol
 * @param {Uint8Array} bytes
 */
export function digest({ core, engine }, protocol, bytes) {
  const events = [];
  const examiner = new core.Examiner({
    protocol: core.PROTOCOLS[protocol],
    onEvent: (event) => void events.push(structuredClone(event)),
  });
  examiner.push(bytes);
  const { findings, traits } = examiner.end();
  const accumulator = new engine.StreamAccumulator({ protocol: core.PROTOCOLS[protocol] });
  accumulator.push(bytes);
  const message = accumulator.finish();
  const { finish_reason, wire_finish_reason, complete, invalid_arguments, diagnostics, wire_usage, usage, error } = message;
  const parts = {
    rules: findings.map(({ rule, severity, count }) => ({ rule: `${KEPT}${rule}`, severity: `${KEPT}${severity}`, count })),
    traits,
    events: events.map((event) => ({ ...event, type: `${KEPT}${event.type}` })),
    stop: { finish_reason: `${KEPT}${finish_reason}`, wire_finish_reason: `${KEPT}${wire_finish_reason}`, complete },
    usage: { usage, wire_usage },
    repairs: { invalid_arguments, diagnostics: diagnostics?.map(({ rule }) => `${KEPT}${rule}`) },
    error: error && { code: `${KEPT}${error.code}`, type: `${KEPT}${error.type}`, status: error.status },
  };
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, mask(part)]));
}

/** Texts become their length, media their format, and so do the names of fields, which may be of users. Bytes spell a text: they are counted. */
function mask(value) {
  if (typeof value === 'string')
    return value.startsWith(KEPT) ? value : (mediaOf(value.replace(/^data:[^,]*,/, '')) ?? value.length);
  if (Array.isArray(value)) return value.map(mask);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).map(([key, member]) => [key.length, key === 'bytes' ? member?.length : mask(member)]);
}
