/** Keys and the audit log for people. */

import { oneLine } from '@sluice/lab/text';
import { type Colors, formatColumns } from '../../terminal/text.ts';
import { formatShort } from '../ledger/figures.ts';
import type { AuditView, IssuedView, KeyView } from './source.ts';

const NONE = '–';

/** `2026-11-17 08:00Z` */
const formatTime = (text: string | null): string => (text === null ? NONE : `${text.slice(0, 16).replace('T', ' ')}Z`);

const formatList = (texts: readonly string[]): string => (texts.length === 0 ? NONE : oneLine(texts.join(', ')));

const formatLimit = (count: number | null): string => (count === null ? NONE : formatShort(count));

/** One line for each key. */
export function formatKeys(keys: readonly KeyView[], { bold, dim }: Colors): string {
  if (keys.length === 0) return 'There are no keys. Create one with "sluice keys create NAME".\n';
  const head = ['NAME', 'ID', 'STATE', 'MODELS', 'BUDGET', 'RPM', 'TPM', 'EXPIRES', 'LAST USED'];
  const rows = keys.map((key) => [
    oneLine(key.name),
    oneLine(key.id),
    key.state,
    formatList(key.models),
    formatList(key.budget),
    formatLimit(key.rpm),
    formatLimit(key.tpm),
    formatTime(key.expires),
    formatTime(key.last_used_at),
  ]);
  const [title = '', ...lines] = formatColumns([head, ...rows]);
  const shown = lines.map((line, index) => (keys[index]?.state === 'active' ? line : dim(line)));
  return [bold(title), ...shown, ''].join('\n');
}

/** Everything about one key. */
export function formatKey(key: KeyView, { bold }: Colors): string {
  const facts: [string, string][] = [
    ['id', oneLine(key.id)],
    ['state', key.state],
    ['models', key.models.length === 0 ? 'all' : formatList(key.models)],
    ['budget', formatList(key.budget)],
    ['requests per minute', formatLimit(key.rpm)],
    ['tokens per minute', formatLimit(key.tpm)],
    ['concurrent requests', formatLimit(key.concurrency)],
    ['addresses', key.ip.length === 0 ? 'all' : formatList(key.ip)],
    ['tags', formatList(key.tags)],
    ['expires', formatTime(key.expires)],
    ['created', formatTime(key.created_at)],
    ['rotated', formatTime(key.rotated_at)],
    ['previous secret valid until', formatTime(key.previous_valid_until)],
    ['revoked', formatTime(key.revoked_at)],
    ['last used', formatTime(key.last_used_at)],
  ];
  return [bold(oneLine(key.name)), ...formatColumns(facts.map(([name, value]) => [`  ${name}`, value])), ''].join('\n');
}

/** What to know about a new secret, which is printed by itself. */
export const describeIssued = ({ key }: IssuedView, verb: 'Created' | 'Rotated'): string =>
  [
    `${verb} key "${oneLine(key.name)}" (id ${oneLine(key.id)}). The secret above is shown once and cannot be read again.`,
    ...(key.previous_valid_until === null ? [] : [`The previous secret is valid until ${formatTime(key.previous_valid_until)}.`]),
    '',
  ].join('\n');

/** What is wrong with a key of a gateway that keeps its data in memory; undefined for all others. Older gateways do not report it. */
export const describeLoss = ({ key, is_persistent }: IssuedView): string | undefined =>
  is_persistent === false
    ? `key "${oneLine(key.name)}" is lost when the gateway stops, because the gateway keeps its data in memory; restart it with a data folder (--data, SLUICE_DATA, or "data" in its configuration), then create the key again`
    : undefined;

/** One line for each entry of the audit log. */
export function formatAudit(entries: readonly AuditView[], { bold }: Colors): string {
  if (entries.length === 0) return 'The audit log is empty.\n';
  const head = ['TIME', 'BY', 'ACTION', 'KEY', 'DETAILS'];
  const rows = entries.map(({ at, actor, action, object, details }) => [
    formatTime(at),
    oneLine(actor),
    oneLine(action),
    oneLine(object === '' ? NONE : object),
    formatDetails(details),
  ]);
  const [title = '', ...lines] = formatColumns([head, ...rows]);
  return [bold(title), ...lines, ''].join('\n');
}

const MAX_DETAILS = 200;

/** `name=alice models=gpt-*`; empty values are omitted. */
function formatDetails(details: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(details).flatMap(([name, value]) => {
    const isEmpty = value === null || (Array.isArray(value) && value.length === 0);
    return isEmpty
      ? []
      : [`${name}=${typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value)}`];
  });
  return oneLine(parts.join(' ').slice(0, MAX_DETAILS)) || NONE;
}
