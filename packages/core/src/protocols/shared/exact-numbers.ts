import { type CodecContext, drop } from './codec.ts';

/** Cheap to ask of every call: only long numbers and those with an exponent can be inexact. */
const SUSPICIOUS = /[\d.]{16}|\d[eE]/;
/** Strings are matched so that the digits in them are passed over. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** The digits that count, and where the point stands among them: equal for equal decimal values. */
function decimalOf(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  return `${significant}e${significant === '' ? 0 : Number(exponent) - fraction.length + digits.length - significant.length}`;
}

const isExact = (literal: string): boolean => {
  const value = Number(literal);
  return Number.isFinite(value) && decimalOf(literal) === decimalOf(String(value));
};

/** The first number of a JSON text that JSON.parse does not keep: a long integer, too many decimals, an exponent out of range. */
export function findInexactNumber(text: string): string | undefined {
  if (!SUSPICIOUS.test(text)) return undefined;
  return text.match(TOKEN)?.find((token) => token[0] !== '"' && !isExact(token));
}

/** The target takes arguments as JSON values in a body that is built as an object: numbers that do not survive this are told. */
export function tellInexactNumbers(text: string, path: string, context: CodecContext): void {
  const literal = findInexactNumber(text);
  if (literal === undefined) return;
  const shown = literal.length > 40 ? `${literal.slice(0, 40)}…` : literal;
  const message = `the number ${shown} in the arguments of a call is not exact in the target; sent as ${JSON.stringify(Number(literal))}`;
  drop(context, { path, feature: 'tool_use.input.precision', message });
}
