/** Exports the exchanges of a filter as a file: JSON lines or CSV. */

import type { Exchange } from '@gateway/admin/types';
import { formatCsvLine } from '@gateway/store/csv';
import { call } from '../lib/data.ts';

/** The format of an export. */
export type ExportFormat = 'jsonl' | 'csv';

/** Rows of an export; `sluice log` has no limit. */
export const MAX_EXPORTED = 50_000;

const PAGE_ROWS = 1000;

/** Reads all rows of a filter and saves them as a file. Resolves with the number of rows. */
export async function exportExchanges(filter: string, format: ExportFormat, onProgress: (rows: number) => void): Promise<number> {
  const parts: string[] = [];
  let count = 0;
  let cursor: string | null | undefined;
  let names: string[] | undefined;
  do {
    const { exchanges, next } = await call('GET exchanges', { query: { filter, limit: PAGE_ROWS, cursor: cursor ?? undefined } });
    for (const exchange of exchanges) {
      if (format === 'csv' && !names) {
        names = Object.keys(exchange);
        parts.push(formatCsvLine(names));
      }
      parts.push(names ? formatCsvRow(exchange, names) : `${JSON.stringify(exchange)}\n`);
    }
    count += exchanges.length;
    onProgress(count);
    cursor = next;
  } while (cursor !== null && count < MAX_EXPORTED);
  save(new Blob(parts, { type: format === 'csv' ? 'text/csv' : 'application/jsonl' }), `exchanges.${format}`);
  return count;
}

const formatCsvRow = (exchange: { [Name in keyof Exchange]?: Exchange[Name] | undefined }, names: readonly string[]): string =>
  formatCsvLine(
    names.map((name) => {
      const value = exchange[name as keyof Exchange]; // the names are those of the first exchange
      if (value === null || value === undefined) return '';
      return typeof value === 'object' ? JSON.stringify(value) : typeof value === 'number' ? value : String(value);
    }),
  );

/** Saves a file of the browser's memory. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
