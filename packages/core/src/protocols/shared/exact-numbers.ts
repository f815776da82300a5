import { endOfString, QUOTE } from '../../json/scanner.ts';
import { type CodecContext, drop } from './codec.ts';

/** Cheap to ask of every call: only long numbers and those with an exponent can be inexact. */
const SUSPICIOUS = /[\d.]{16}|\d[eE]/;
const NUMBER = /-?\d[\d.eE+-]*/y;
const ZERO = 0x30;

/** The digits that count, and where the point stands among them: equal for equal decimal values. */
function decimalOf(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = whole + fraction;
  // Loops: /0+$/ looks at every run of zeros from each of its places, which is quadratic.
  let start = 0;
  while (digits.charCodeAt(start) === ZERO) start++;
  let end = digits.length;
  while (end > start && digits.charCodeAt(end - 1) === ZERO) end--;
  return `${digits.slice(start, end)}e${start === end ? 0 : Number(exponent) - fraction.length + digits.length - end}`;
}

const isExact = (literal: string): boolean => {
  const value = Number(literal);
  return Number.isFinite(value) && decimalOf(literal) === decimalOf(String(value));
};

/** The first number of a JSON text that JSON.parse does not keep: a long integer, too many decimals, an exponent out of range. */
export function findInexactNumber(text: string): string | undefined {
  if (!SUSPICIOUS.test(text)) return undefined;
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) === QUOTE) at = endOfString(text, at) - 1;
    else {
      NUMBER.lastIndex = at;
      const literal = NUMBER.exec(text)?.[0];
      if (literal === undefined) continue;
      if (!isExact(literal)) return literal;
      at += literal.length - 1;
    }
  }
  return undefined;
}

/** The target takes arguments as JSON values in a body that is built as an object: numbers that do not survive this are told. */
export function tellInexactNumbers(text: string, path: string, context: CodecContext): void {
  const literal = findInexactNumber(text);
  if (literal === undefined) return;
  const shown = literal.length > 40 ? `${literal.slice(0, 40)}…` : literal;
  const message = `the number ${shown} in the arguments of a call is not exact in the target; sent as ${JSON.stringify(Number(literal))}`;
  drop(context, { path, feature: 'tool_use.input.precision', message });
}
