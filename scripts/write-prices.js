// Writes packages/gateway/prices.json, the extract of @pydantic/genai-prices that the gateway ships; a test holds that it was run.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitForUpdate } from '@pydantic/genai-prices';

const folder = join(dirname(createRequire(import.meta.url).resolve('@pydantic/genai-prices')), '..');

/** Prices that are charged for something which usage counts. */
const KEPT_KEYS = [
  'input_mtok',
  'cache_read_mtok',
  'cache_write_mtok',
  'cache_write_1h_mtok',
  'input_audio_mtok',
  'input_image_mtok',
  'input_video_mtok',
  'output_mtok',
  'output_reasoning_mtok',
  'output_audio_mtok',
  'output_image_mtok',
  'requests_kcount',
  'web_searches_kcount',
];

/** The text of `prices.json`: one line per model, so that an update can be reviewed. */
export async function buildPriceFile() {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const license = readFileSync(join(folder, 'LICENSE'), 'utf8');
  // Without an update this is the data of the package.
  const providers = (await waitForUpdate()).map(
    ({ id, models }) =>
      `    ${JSON.stringify(id)}: [\n${models.map((model) => `      ${JSON.stringify(buildModel(model))}`).join(',\n')}\n    ]`,
  );
  return `{
  "source": "@pydantic/genai-prices",
  "version": ${JSON.stringify(version)},
  "license": ${JSON.stringify(license)},
  "providers": {
${providers.join(',\n')}
  }
}
`;
}

const buildModel = ({ id, match, context_window, prices }) => ({
  id,
  match: lowerCase(match),
  ...(context_window !== undefined && { context_window }),
  periods: buildPeriods(prices),
});

/** Matching ignores case, except in regular expressions, which see the name in lower case. */
function lowerCase(match) {
  const [[kind, value]] = Object.entries(match);
  if (Array.isArray(value)) return { [kind]: value.map(lowerCase) };
  return { [kind]: kind === 'regex' ? value : value.toLowerCase() };
}

/** The package tries periods from the last to the first; here the first that applies wins. */
const buildPeriods = (prices) => (Array.isArray(prices) ? prices.toReversed().map(buildPeriod) : [buildPeriod({ prices })]);

function buildPeriod({ constraint, prices }) {
  const kept = KEPT_KEYS.filter((key) => prices[key] !== undefined).map((key) => [key, buildRate(prices[key])]);
  return { ...buildConstraint(constraint), prices: Object.fromEntries(kept) };
}

function buildConstraint(constraint) {
  switch (constraint?.type) {
    case undefined:
      return {};
    case 'start_date':
      return { from: constraint.start_date };
    case 'time_of_date':
      return { between: [readTime(constraint.start_time), readTime(constraint.end_time)] };
    default:
      throw new Error(`unknown price constraint ${JSON.stringify(constraint)}`);
  }
}

/** Seconds since midnight UTC. */
function readTime(text) {
  const [, hours, minutes, seconds] = /^(\d\d):(\d\d):(\d\d)Z$/.exec(text) ?? [];
  if (hours === undefined) throw new Error(`unknown time of day ${text}`);
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

const buildRate = (rate) =>
  typeof rate === 'number'
    ? round(rate)
    : { base: round(rate.base), tiers: rate.tiers.map(({ start, price }) => ({ above: start, price: round(price) })) };

/** Six decimals are one trillionth of a dollar per token; more are noise (0.18000000000000002) or a third (0.08333…). */
const round = (price) => Number(price.toFixed(6));

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../packages/gateway/prices.json', import.meta.url), await buildPriceFile());
