import { readFileSync } from 'node:fs';
import { type ProtocolId, RULES, type RuleId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { findBreakage } from '@sluice/core/internal';
import { listMutations, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { readCases } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { cleanStreams, PROTOCOL_IDS } from './clean-streams.ts';
import { examine } from './examine.ts';
import type { Scanned } from './scan.ts';

interface Example {
  protocol: ProtocolId;
  text: string;
  /** Where it comes from. */
  source: string;
  links: readonly string[];
}

const root = new URL('../../', import.meta.url);

const VERDICTS = JSON.parse(readFileSync(new URL('fixtures/verdicts.json', root), 'utf8')) as Record<string, RuleId[]>;

interface SourcedCase {
  id: string;
  protocol: string;
  raw: string;
  sources?: string[];
}

const CASES: SourcedCase[] = readCases();

const isReported = ({ sources = [] }: SourcedCase): boolean => sources.length > 0;

const byReport = (a: SourcedCase, b: SourcedCase): number =>
  Number(isReported(b)) - Number(isReported(a)) || a.raw.length - b.raw.length;

/** Cases that were written for the rule first, then those that show it, too; reported ones before our own, and of each the shortest. */
function casesOf(rule: RuleId): SourcedCase[] {
  const shown = CASES.filter(({ id }) => VERDICTS[id]?.includes(rule)).toSorted(byReport);
  const isMain = ({ id }: SourcedCase): boolean => VERDICTS[id]?.[0] === rule;
  return [...shown.filter(isMain), ...shown.filter((one) => !isMain(one))];
}

/** A dialect that makes the violation out of a clean stream. */
function madeOf(rule: RuleId): Example | undefined {
  for (const protocol of PROTOCOL_IDS)
    for (const mutation of listMutations(protocol).filter((one) => one.rule === rule))
      for (const clean of cleanStreams(protocol)) {
        const random = seededRandom(3);
        const mutated = mutation.apply(clean, random);
        const chunks = mutated === clean ? [] : writeStream(mutated, random);
        const { findings } = examine(chunks, { protocol: CODECS[protocol] });
        if (findings.some((finding) => finding.rule === rule))
          return {
            protocol,
            text: Buffer.concat(chunks).toString(),
            source: `made by the dialect \`${mutation.id}\``,
            links: [],
          };
      }
  return undefined;
}

function exampleOf(rule: RuleId): Example | undefined {
  const [first] = casesOf(rule);
  if (!first) return madeOf(rule);
  return { protocol: protocolOf(first.protocol).id, text: first.raw, source: `the case \`${first.id}\``, links: [] };
}

const MOST = 2400;

function showExample(rule: RuleId): string[] {
  const example = exampleOf(rule);
  if (!example) return ['No recorded stream shows it: it is damage in transit, which is tested at the byte level.'];
  const { findings } = examine([bytesOf(example.text)], { protocol: CODECS[example.protocol] });
  const offset = findings.find((finding) => finding.rule === rule)?.offset ?? 0;
  const isCut = example.text.length > MOST;
  const shown = isCut ? `${example.text.slice(0, MOST)}…` : example.text;
  return [
    `From ${example.source}; the violation is at byte ${offset}.${isCut ? ' Its beginning:' : ''}`,
    '',
    '```text',
    // What a page could not show stands as an escape.
    ...shown
      .trimEnd()
      .replaceAll('\r', '␍')
      .replaceAll('```', '` ` `')
      .replaceAll('\u2028', '\\u2028')
      .replaceAll('\u2029', '\\u2029')
      .split('\n'),
    '```',
  ];
}

/** "openrouter (34 of 73)" */
function recordedOf(rule: RuleId, scanned: readonly Scanned[]): string[] {
  const key = ({ protocol, provider }: Scanned): string => `${provider} (${protocol})`;
  const met = scanned.filter(({ rules }) => rules.includes(rule));
  return [...new Set(met.map(key))].toSorted().map((name) => {
    const all = scanned.filter((one) => key(one) === name).length;
    return `${name}: ${met.filter((one) => key(one) === name).length} of ${all} recorded streams`;
  });
}

export const pageName = (rule: RuleId): string => `${rule.replace('/', '-')}.md`;

/** The page of a rule. */
export function renderRule(rule: RuleId, scanned: readonly Scanned[]): string {
  const { title, explanation, remedy, severity, providers } = RULES[rule];
  const breaks = findBreakage(rule);
  const links = [...new Set(casesOf(rule).flatMap(({ id, sources = [] }) => (VERDICTS[id]?.[0] === rule ? sources : [])))];
  const recorded = recordedOf(rule, scanned);
  return `${[
    '<!-- Written by a test: npm run docs -->',
    `# ${rule}`,
    '',
    `**${title}** · ${severity}`,
    '',
    explanation,
    '',
    '## What Sluice does',
    remedy,
    '',
    '## Clients that fail',
    ...(breaks.length === 0
      ? ['None of the tested clients.']
      : [
          '| client | what it does |',
          '|---|---|',
          ...breaks.map(({ client, effect }) => `| ${client} | ${effect.replaceAll('|', '\\|')} |`),
        ]),
    '',
    '## An example',
    ...showExample(rule),
    '',
    '## Providers',
    ...(providers.length === 0 && recorded.length === 0 ? ['No known provider.'] : []),
    ...(providers.length > 0 ? [`Reported: ${providers.join(', ')}.`] : []),
    ...(recorded.length > 0 ? ['', 'Recorded:', ...recorded.map((line) => `- ${line}`)] : []),
    ...(links.length > 0 ? ['', '## Public reports', ...links.map((link) => `- <${link}>`)] : []),
  ].join('\n')}\n`;
}

/** The list of all rules. */
export function renderIndex(): string {
  const rows = (Object.keys(RULES) as RuleId[]).map((rule) => {
    const { title, severity } = RULES[rule];
    return `| [${rule}](${pageName(rule)}) | ${severity} | ${title.replaceAll('|', '\\|')} |`;
  });
  return `${[
    '<!-- Written by a test: npm run docs -->',
    '# Rules',
    '',
    'Every violation of the standards that Sluice detects. **error**: official clients fail or lose data; **warning**: some clients do; **info**: allowed or harmless, but worth knowing.',
    '[docs/doctor.md](../doctor.md) shows how to find them in a stream.',
    '',
    '| rule | severity | |',
    '|---|---|---|',
    ...rows,
  ].join('\n')}\n`;
}
