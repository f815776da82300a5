/** What ids of rows, subjects and protocols are called, and the part that a subject has in a comparison. */

/**
 * In the order of charts and tables. `role`: `limit` is what the work costs without a gateway's duties, `reference` what all ratios of the gateway
 * refer to, `peer` another product, `bare` and `us` Sluice without and with what operators use.
 */
export const SUBJECTS = {
  nginx: { name: 'nginx', role: 'limit' },
  haproxy: { name: 'HAProxy', role: 'limit' },
  server: { name: 'bare node:http server', role: 'reference' },
  undici: { name: 'node:http + undici', role: 'reference' },
  pipe: { name: 'node:http pipe', role: 'limit' },
  hand: { name: 'hand-written', role: 'limit' },
  portkey: { name: 'Portkey', role: 'peer' },
  sluice: { name: 'Sluice, bare', role: 'bare' },
  'sluice+ledger': { name: 'Sluice + ledger', role: 'bare' },
  'sluice+ring': { name: 'Sluice + ledger, captures in memory', role: 'bare' },
  'sluice+key': { name: 'Sluice + ledger, key', role: 'bare' },
  'sluice-full': { name: 'Sluice, full', role: 'us' },
  'sluice+captures': { name: 'Sluice, full, captures on disk', role: 'us' },
};

export const nameOf = (subject) => SUBJECTS[subject]?.name ?? subject;
export const roleOf = (subject) => SUBJECTS[subject]?.role ?? 'limit';

const ORDER = Object.keys(SUBJECTS);

/** Known subjects first, in their order; others as they come. */
export function orderSubjects(subjects) {
  const place = (subject) => (ORDER.includes(subject) ? ORDER.indexOf(subject) : ORDER.length);
  return [...new Set(subjects)].toSorted((a, b) => place(a) - place(b));
}

export const PROTOCOLS = { chat: 'Chat', anthropic: 'Anthropic', responses: 'Responses', gemini: 'Gemini' };

const NAMES = Object.keys(PROTOCOLS).join('|');
/** `json-1m anthropic>chat p50` of the gateway, `request-1m-chat-gemini` of the library. */
const DIRECTION = new RegExp(`^(.*?)[\\s-]?(${NAMES})[>-](${NAMES})(?:\\s+(.*))?$`);

/** The parts of an id with a direction; undefined for one without. */
export function readDirection(id) {
  const found = DIRECTION.exec(id);
  if (!found) return undefined;
  const [, before, from, to, after = ''] = found;
  return { before, from, to, after };
}

/** `Anthropic → Chat` */
export const describeDirection = ({ from, to }) => `${PROTOCOLS[from]} → ${PROTOCOLS[to]}`;

export const SIZES = { '0.1k': '0.1 KB', '1k': '1 KB', '100k': '100 KB', '1m': '1 MB' };
/** Places of the sizes on an axis. */
export const SIZE_KB = { '0.1k': 0.1, '1k': 1, '100k': 100, '1m': 1000 };

/** The size in an id such as `request-100k-chat-gemini`. */
export const readSize = (id) => /(?:^|[\s-])(0\.1k|1k|100k|1m)(?=[\s-]|$)/.exec(id)?.[1];
