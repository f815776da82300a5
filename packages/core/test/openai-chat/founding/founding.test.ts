import { describe, expect, test } from 'vitest';
import { INTERFACE_ROWS } from './interface-rows.ts';
import { OTHER_ROWS } from './other-rows.ts';
import { REQUEST_DECODE_ROWS } from './request-decode-rows.ts';
import { REQUEST_ENCODE_ROWS } from './request-encode-rows.ts';
import { RESPONSE_ROWS } from './response-rows.ts';
import type { Row } from './row.ts';
import { STREAM_ROWS } from './stream-rows.ts';

const ROWS: readonly Row[] = [
  ...INTERFACE_ROWS,
  ...REQUEST_DECODE_ROWS,
  ...REQUEST_ENCODE_ROWS,
  ...RESPONSE_ROWS,
  ...STREAM_ROWS,
  ...OTHER_ROWS,
];
const KEPT = ROWS.filter(({ deviation }) => !deviation);
const DEVIATIONS = ROWS.flatMap(({ deviation, ...row }) =>
  deviation ? [{ ...row, ...deviation, does: row.actual, actual: deviation.actual }] : [],
);

const nameOf = ({ at, says }: Pick<Row, 'at' | 'says'>): string => `${at} ${says}`;

describe('founding document 004', () => {
  test.each(KEPT.map((row) => [nameOf(row), row] as const))('%s', (_, { actual, wanted }) => expect(actual()).toEqual(wanted));

  test.each(DEVIATIONS.map((row) => [nameOf(row), row] as const))('deviates: %s', (_, { does, actual, wanted }) => {
    expect(does()).toEqual(actual);
    expect(actual).not.toEqual(wanted);
  });

  test('no statement stands twice', () => {
    const names = ROWS.map(nameOf);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  test('docs/seed-004-deviations.md is what this test writes', async () => {
    await expect(page()).toMatchFileSnapshot('../../../../../docs/seed-004-deviations.md');
  });
});

function page(): string {
  const rows = DEVIATIONS.map(
    ({ at, says, actual, reason }) => `| ${at} | ${cell(says)} | ${cell(shown(actual))} | ${cell(reason)} |`,
  );
  return [
    '# Deviations from founding document 004',
    '',
    `Written by \`npx vitest run packages/core/test/openai-chat/founding -u\` from the table in packages/core/test/openai-chat/founding. Of ${ROWS.length} statements, the code follows ${KEPT.length} and deviates from ${DEVIATIONS.length}.`,
    'Numbers with `#` are explained in [seed-004.md](seed-004.md).',
    '',
    '| section | the document says | the code gives | reason |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

const shown = (value: unknown): string => (value === undefined ? 'nothing' : `\`${JSON.stringify(value)}\``);
const cell = (text: string): string => text.replaceAll('|', '\\|');
