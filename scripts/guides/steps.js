/**
 * The steps of a guide: what a reader does from top to bottom.
 *
 *   ```sh                      commands of one terminal; the last exit code must be 0, or that of `exit=N`
 *   ```sh terminal             a program in a terminal of its own, until the end of the guide; the next step follows when it is ready
 *   ```sh needs=docker         commands that need something that most machines lack; skipped, with the reason, unless asked for
 *   ```console                 commands after "$ ", each followed by what it prints
 *   ```yaml, ts, js            a file, if the first line is a comment with its name; else an illustration
 */
import { listFences, readFlag } from './fences.js';

/**
 * @typedef {{ kind: 'run', code: string, exit: number, prints?: string }} RunStep
 * @typedef {{ kind: 'terminal', code: string }} TerminalStep
 * @typedef {{ kind: 'skip', code: string, needs: string }} SkipStep
 * @typedef {{ kind: 'file', name: string, code: string }} FileStep
 * @typedef {(RunStep | TerminalStep | SkipStep | FileStep) & { line: number }} Step
 */

/**
 * @param {string} text the Markdown of a guide
 * @param {ReadonlySet<string>} available what `needs=…` may ask for
 * @returns {Step[]}
 */
export function readSteps(text, available = new Set()) {
  return listFences(text).flatMap((fence) => readFence(fence, available).map((step) => ({ ...step, line: fence.line })));
}

/** Languages of files. */
const FILES = new Set(['yaml', 'js', 'ts']);

function readFence({ language, flags, code }, available) {
  const needs = readFlag(flags, 'needs');
  if (needs !== undefined && !available.has(needs)) return [{ kind: 'skip', code, needs }];
  if (language === 'sh' && flags.includes('terminal')) return [{ kind: 'terminal', code }];
  const exit = Number(readFlag(flags, 'exit') ?? 0);
  if (language === 'sh') return [{ kind: 'run', code, exit }];
  if (language === 'console') return readConsole(code, exit);
  if (!FILES.has(language)) return [];
  const name = /^(?:#|\/\/) (\S+\.\w+)\n/.exec(code)?.[1];
  return name === undefined ? [] : [{ kind: 'file', name, code }];
}

/** Lines after "$ " are commands, and what follows is printed by them. */
function readConsole(code, exit) {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = '', ...printed] = part.split('\n');
      const prints = printed.join('\n').trim();
      return { kind: 'run', code: command, exit, ...(prints === '' ? {} : { prints }) };
    });
}

/**
 * The part of a page below a heading of the second level; without one, the whole page.
 * @param {string} text
 * @param {string | undefined} section
 */
export function readSection(text, section) {
  if (section === undefined) return text;
  const parts = text.split(/^(?=## )/m);
  const found = parts.findIndex((part) => part.startsWith(`## ${section}\n`));
  if (found < 0) throw new Error(`no section is called "${section}"`);
  // Lines above keep their number.
  return parts.slice(0, found).join('').replaceAll(/[^\n]/g, '') + parts[found];
}

/**
 * How many lines of a step a reader types: without comments, empty lines and lines that continue another.
 * @param {string} code
 */
export const countCommands = (code) =>
  code
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#')).length;

/** What differs from run to run, and how much space surrounds it. */
const VARIABLE = [
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g, 'TIME'],
  [/\b\d+(?:\.\d+)? m?s\b/g, 'DURATION'],
  // Ids of exchanges, and of keys.
  [/\b[0-9a-f]{12}\b/g, 'ID'],
  [/\b[A-Za-z0-9_-]{16}\b/g, 'ID'],
  [/\s+/g, ' '],
];

/**
 * Compares what a command prints with what a guide shows. Ids, times and durations differ from run to run, and so does what "…" stands for.
 * @param {string} shown
 * @param {string} printed
 * @returns {string | undefined} the first line of the guide that was not printed
 */
export function findMissingLine(shown, printed) {
  const lines = printed.split('\n').map(normalize);
  return shown
    .split('\n')
    .filter((line) => line.trim() !== '')
    .find((line) => {
      const pattern = compilePattern(line);
      return !lines.some((one) => pattern.test(one));
    });
}

const normalize = (line) => VARIABLE.reduce((text, [pattern, name]) => text.replaceAll(pattern, name), line).trim();

/** "…" is any text of the line. */
const compilePattern = (line) =>
  new RegExp(
    `^${normalize(line)
      .split(/\s*…\s*/)
      .map(quotePattern)
      .join('.*')}$`,
  );

const quotePattern = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
