import { RULES, type RuleId, type Severity } from '@sluice/core';
import { pageName } from './rule-page.ts';
import type { Scanned } from './scan.ts';

const PROTOCOLS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'] as const;

const RANK = { error: 0, warning: 1, info: 2 } as const;

const MARK = { error: '**', warning: '', info: '_' } as const;

/** The worst that a rule came to in these streams: a form that a vendor sends itself is less severe than its rule. */
function severityIn(streams: readonly Scanned[], rule: RuleId): Severity {
  const met = streams.flatMap(({ examination }) => examination.findings.filter((finding) => finding.rule === rule));
  return met.map(({ severity }) => severity).toSorted((a, b) => RANK[a] - RANK[b])[0] ?? RULES[rule].severity;
}

function rulesOf(streams: readonly Scanned[]): string {
  const met = [...new Set(streams.flatMap(({ rules }) => rules))]
    .map((rule) => ({ rule, severity: severityIn(streams, rule) }))
    .toSorted((a, b) => RANK[a.severity] - RANK[b.severity] || (a.rule < b.rule ? -1 : 1));
  const shown = met.map(({ rule, severity }) => {
    const count = streams.filter(({ rules }) => rules.includes(rule)).length;
    const mark = MARK[severity];
    return `${mark}[${rule.slice(rule.indexOf('/') + 1)}](rules/${pageName(rule)})${mark}${count === streams.length ? '' : ` ${count}`}`;
  });
  return shown.length === 0 ? '–' : shown.join(', ');
}

function traitsOf(streams: readonly Scanned[]): string {
  const fields = [...new Set(streams.flatMap(({ examination }) => examination.traits.reasoning_fields))].toSorted();
  const has = (isTrue: (one: Scanned) => boolean): boolean => streams.some(isTrue);
  return [
    ...fields.map((field) => `\`${field}\``),
    ...(has(({ examination }) => examination.traits.think_tags) ? ['think tags'] : []),
    ...(has(({ examination }) => examination.traits.comments > 0) ? ['comments'] : []),
  ].join(', ');
}

function table(streams: readonly Scanned[]): string[] {
  const providers = [...new Set(streams.map(({ provider }) => provider))].toSorted();
  return [
    '| provider | streams | clean | violations | habits |',
    '|---|--:|--:|---|---|',
    ...providers.map((provider) => {
      const own = streams.filter((one) => one.provider === provider);
      const clean = own.filter(({ rules }) => rules.length === 0).length;
      return `| ${provider} | ${own.length} | ${clean} | ${rulesOf(own)} | ${traitsOf(own)} |`;
    }),
  ];
}

/** What each recorded provider does, by rule. */
export function renderProviders(scanned: readonly Scanned[]): string {
  const clean = scanned.filter(({ rules }) => rules.length === 0).length;
  return `${[
    '<!-- Written by a test: npm run docs -->',
    '# What providers do',
    '',
    `${scanned.length} streams of ${new Set(scanned.map(({ provider }) => provider)).size} providers, examined by \`sluice doctor\`; ${clean} have no violation. They are rendered from the corpus (\`fixtures/corpus\`): shapes of recordings that third parties made and published over several years:`,
    'a provider may have changed since, and a few streams prove little. Changes made by the recorder (rebuilt framing, replaced ids) are excluded.',
    '',
    '**bold**: official clients fail; plain: some clients fail; _italic_: worth knowing. A number is the number of streams that show it; without a number, all of them do.',
    'Habits are not violations, for example the field of the reasoning, or comments as keep-alives.',
    ...PROTOCOLS.flatMap((protocol) => ['', `## ${protocol}`, '', ...table(scanned.filter((one) => one.protocol === protocol))]),
  ].join('\n')}\n`;
}
