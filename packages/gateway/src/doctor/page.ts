import { createHash } from 'node:crypto';
import type { Finding } from '@sluice/core';
import { formatBytes } from '../terminal/text.ts';
import { type Checkup, computeOverallScore, describeCounts, findScore, groupBreaks, listUnknown, NOT_KNOWN } from './checkup.ts';

/** All reports of `sluice doctor` as one HTML page without external resources. */
export function renderPage(checkups: readonly Checkup[]): string {
  const unknown = listUnknown(checkups);
  const missing = unknown.length > 0 ? `<p>${NOT_KNOWN}: ${escapeText(unknown.join(', '))}</p>` : '';
  const score = renderScore(computeOverallScore(checkups), unknown.length > 0);
  const overall =
    checkups.length > 1 ? `<p>${score} <small>over all ${checkups.length}</small></p>${missing}${renderSummary(checkups)}` : '';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer"><title>Sluice doctor</title><style>${STYLE}</style></head>
<body><h1>Sluice doctor</h1>${overall}
${checkups.map(renderSection).join('\n')}
</body></html>
`;
}

function renderScore(score: number | undefined, isUpperBound = false): string {
  if (score === undefined) return `<span class="score fair">${NOT_KNOWN}</span>`;
  const grade = score === 100 && !isUpperBound ? 'good' : score >= 80 ? 'fair' : 'bad';
  return `${isUpperBound ? 'at most ' : ''}<span class="score ${grade}">${score}</span> of 100`;
}

function renderSummary(checkups: readonly Checkup[]): string {
  const rows = checkups.map((checkup) => {
    const { name, examination, probe, error } = checkup;
    const score = findScore(checkup) ?? (examination ? NOT_KNOWN : '–');
    const facts = examination ? describeCounts(examination.findings) : (error?.message ?? probe?.note ?? '');
    return `<tr><td>${escapeText(name)}</td><td>${probe ? escapeText(probe.outcome) : ''}</td><td>${score}</td><td>${escapeText(facts)}</td></tr>`;
  });
  return `<table><tr><th></th><th></th><th>score</th><th></th></tr>${rows.join('')}</table>`;
}

function renderSection(checkup: Checkup): string {
  const { name, examination, error, probe } = checkup;
  const facts = [
    probe?.title ?? '',
    probe ? `${probe.outcome}${probe.status === null ? '' : `, HTTP ${probe.status}`}` : '',
    probe?.note ?? '',
    examination?.protocol ?? '',
    examination?.message.model ?? '',
    examination ? formatBytes(examination.bytes) : '',
  ].filter((fact) => fact !== '');
  return `<section><h2>${escapeText(name === '-' ? 'standard input' : name)}</h2><p class="facts">${escapeText(facts.join(' · '))}</p>
${examination ? `<p>${renderScore(findScore(checkup))} <small>${escapeText(describeCounts(examination.findings))}</small></p>` : ''}
${error ? `<article class="error"><h3>${escapeText(String(error.code))}</h3><p>${escapeText(error.message)}</p></article>` : ''}
${(examination?.findings ?? []).map(renderFinding).join('\n')}</section>`;
}

function renderFinding({ rule, severity, title, message, offset, count, excerpt, remedy, breaks }: Finding): string {
  const broken = groupBreaks(breaks).map(
    ({ clients, effect }) => `<li>${escapeText(clients.join(', '))}: ${escapeText(effect)}</li>`,
  );
  return `<article class="${severity}"><h3>${escapeText(title)}</h3>
<p><code>${escapeText(rule)}</code> <small>${severity}, ${count > 1 ? `${count} times, from byte ${offset}` : `byte ${offset}`}</small></p>
${message === title ? '' : `<p>${escapeText(message)}</p>`}${excerpt === '' ? '' : `<pre>${escapeText(excerpt)}</pre>`}
<dl><dt>Sluice</dt><dd>${escapeText(remedy)}</dd>${broken.length > 0 ? `<dt>breaks</dt><dd><ul>${broken.join('')}</ul></dd>` : ''}</dl></article>`;
}

/** Escapes a text of any origin for the page. */
const escapeText = (value: string): string =>
  value.replace(UNSAFE, (char) => ESCAPES[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

// Bidirectional and control characters could make the page differ from the bytes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[&<>"']|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

const STYLE = `:root{color-scheme:light dark;--line:#8884;--soft:#8882;--error:#c0392b;--warning:#b7791f;--info:#2b6cb0;--good:#2f855a}
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.5rem 0 .25rem;overflow-wrap:anywhere}
p{margin:.25rem 0}small,.facts{color:#777}
.score{font-size:2rem;font-weight:700}.good{color:var(--good)}.fair{color:var(--warning)}.bad{color:var(--error)}
article{border:1px solid var(--line);border-left-width:.4rem;border-radius:.4rem;padding:.6rem .9rem;margin:.8rem 0}
article.error{border-left-color:var(--error)}article.warning{border-left-color:var(--warning)}article.info{border-left-color:var(--info)}
h3{font-size:1rem;margin:0}code,pre{font:13px/1.45 ui-monospace,monospace}
pre{background:var(--soft);padding:.5rem;border-radius:.3rem;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;margin:.4rem 0 0}dt{color:#777}dd{margin:0}
ul{margin:0;padding-left:1.1rem}table{border-collapse:collapse;margin:1rem 0}td,th{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line)}`;

/** Loads nothing, runs nothing, and allows this style only. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`;
