/**
 * What is measured. A case is one stream, a list of subjects, and goals: at most how many times the cost of another subject Sluice may have.
 * The first subject is the reference of the ratios. A subject is a function of a module in `subjects/`; `light` ones are quick enough to be
 * warmed up and measured for longer.
 */
const HAND = { name: 'hand-written', run: 'hand', light: true };
const SLUICE = { name: 'sluice', run: 'sluice', light: true };
const OPENAI = { name: 'openai', run: 'openai' };
const ANTHROPIC = { name: '@anthropic-ai/sdk', run: 'anthropic' };
const AI = { name: 'ai', run: 'ai' };
const LANGCHAIN = { name: 'langchain', run: 'langchain' };

const label = { text: 'text', tool: 'one call', parallel: '64 calls' };
const size = (n) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1000 ? `${n / 1000}k` : `${n}`);

function accumulateCase(kind, n, subjects) {
  return { section: 'accumulate', name: `${label[kind]} ${kind === 'parallel' ? 'x ' : ''}${size(n)}`, kind, n, subjects };
}

function endToEndCase(kind, n) {
  const subjects = [
    HAND,
    { ...SLUICE, name: 'sluice StreamAccumulator' },
    { ...SLUICE, name: 'sluice accumulate()', function: 'endToEndAsync' },
    OPENAI,
    ANTHROPIC,
    AI,
    LANGCHAIN,
  ];
  const name = `${label[kind]} ${kind === 'parallel' ? 'x ' : ''}${size(n)}`;
  return { section: 'endToEnd', name, kind, n, pieceBytes: 8192, subjects };
}

function sseCase(name, bytes, pieceBytes, json) {
  const subjects = [HAND, SLUICE, { name: 'eventsource-parser', run: 'eventsource-parser', light: true }];
  if (json) subjects.push({ name: 'JSON.parse alone', run: 'json', light: true });
  const goals = json ? [{ to: 'JSON.parse alone', most: 1.5 }] : [{ to: 'eventsource-parser', most: 1 }];
  return { section: 'sse', name, kind: 'text', bytes, pieceBytes, json, subjects, goals };
}

/** Bytes of a stream in one protocol to bytes of one in another. The hand-written converters know only chat to Anthropic. */
function convertCase(kind, n, from = 'openai-chat', to = 'anthropic-messages') {
  const isHand = from === 'openai-chat' && to === 'anthropic-messages';
  const subjects = [
    ...(isHand ? [{ ...HAND, name: 'hand: objects', function: 'convertObjects' }] : []),
    ...(isHand ? [{ ...HAND, name: 'hand: templates', function: 'convertTemplates' }] : []),
    SLUICE,
    { name: 'llm-bridge', run: 'llm-bridge' },
    ...(isHand ? [{ name: '@musistudio/llms', run: 'llms' }] : []),
  ];
  const pair = isHand ? '' : `, ${from} to ${to}`;
  return { section: 'convert', name: `${label[kind]} ${size(n)}${pair}`, kind, n, from, to, pieceBytes: 8192, subjects };
}

export function casesOf({ quick }) {
  const all = [HAND, SLUICE, OPENAI, ANTHROPIC, AI, LANGCHAIN];
  const cases = [
    accumulateCase('text', 1000, all),
    accumulateCase('text', 10_000, all),
    accumulateCase('text', 100_000, [HAND, SLUICE, OPENAI, ANTHROPIC, LANGCHAIN]),
    accumulateCase('tool', 10_000, all),
    accumulateCase('tool', 100_000, [HAND, SLUICE, OPENAI, ANTHROPIC, LANGCHAIN]),
    accumulateCase('tool', 1_000_000, [HAND, SLUICE, OPENAI]),
    accumulateCase('parallel', 1000, all),
    sseCase('50 MB, 16 KB pieces', 50e6, 16_384, false),
    sseCase('the same + JSON.parse', 50e6, 16_384, true),
    sseCase('1 MB, byte by byte', 1e6, 1, false),
    endToEndCase('text', 1000),
    endToEndCase('text', 10_000),
    endToEndCase('tool', 1000),
    endToEndCase('tool', 10_000),
    endToEndCase('parallel', 100),
    convertCase('text', 1000),
    convertCase('text', 10_000),
    convertCase('text', 50_000),
    convertCase('tool', 1000),
    convertCase('tool', 50_000),
    convertCase('text', 10_000, 'anthropic-messages', 'openai-chat'),
    convertCase('text', 10_000, 'openai-chat', 'openai-responses'),
    convertCase('text', 10_000, 'openai-chat', 'gemini'),
  ];
  return quick ? cases.filter(({ n, bytes }) => (n ?? bytes) <= 10_000 || bytes === 1e6) : cases;
}
