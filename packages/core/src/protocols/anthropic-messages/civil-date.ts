// Dates without a clock: days are counted from 1 March of the year 0 of the Gregorian calendar, so that a leap day ends its year.

const DAY = 86_400;
/** Days of 400 years, after which the calendar repeats. */
const ERA = 146_097;
/** From 0000-03-01 to 1970-01-01. */
const EPOCH = 719_468;

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** Unix seconds of an RFC 3339 time, fractions cut off; undefined for anything else. */
export function unixOf(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined;
  const offset = (Number(match[8] ?? 0) * 60 + Number(match[9] ?? 0)) * (match[7] === '-' ? -60 : 60);
  return daysOf(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
}

/** RFC 3339 in UTC. */
export function isoOf(unix: number): string {
  const seconds = Math.floor(unix);
  const days = Math.floor(seconds / DAY);
  const rest = seconds - days * DAY;
  const { year, month, day } = dateOf(days);
  const time = [Math.floor(rest / 3600), Math.floor(rest / 60) % 60, rest % 60];
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}T${time.map((part) => pad(part)).join(':')}Z`;
}

const pad = (value: number, width = 2): string => String(value).padStart(width, '0');

/** Days since 1970-01-01. */
function daysOf(year: number, month: number, day: number): number {
  const begun = month <= 2 ? year - 1 : year;
  const era = Math.floor(begun / 400);
  const yearOfEra = begun - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return era * ERA + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - EPOCH;
}

function dateOf(days: number): { year: number; month: number; day: number } {
  const shifted = days + EPOCH;
  const era = Math.floor(shifted / ERA);
  const dayOfEra = shifted - era * ERA;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
  };
}
