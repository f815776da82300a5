// The clients of the matrix, and what the scripted upstream can do wrong. Data only.

/** What the gateway's upstreams speak: one provider each. `root`: what a base URL of that protocol ends in. */
export const UPSTREAMS = {
  'openai-chat': { provider: 'chat', root: '/v1' },
  'anthropic-messages': { provider: 'anthropic', root: '' },
  'openai-responses': { provider: 'responses', root: '/v1' },
  gemini: { provider: 'gemini', root: '/v1beta' },
};

const row = (name, protocol, folder, more = {}) => ({ name, protocol, folder, inst: '', runner: name, env: {}, ...more });

/** Newest versions, installed beside the pinned ones; they run with node 22. */
const LATEST = { inst: 'latest' };

/** `inst`, `folder`: where it is installed, relative to INST; `package`: what its version is read from; `isWhole`: it requests no streams. */
export const CLIENTS = [
  row('sdk-openai-chat', 'openai-chat', 'sdk-openai', { package: 'openai', title: 'openai SDK, chat' }),
  row('sdk-openai-responses', 'openai-responses', 'sdk-openai', { package: 'openai', title: 'openai SDK, responses' }),
  row('sdk-anthropic', 'anthropic-messages', 'sdk-anthropic', { package: '@anthropic-ai/sdk', title: '@anthropic-ai/sdk' }),
  row('sdk-google', 'gemini', 'sdk-google', { package: '@google/genai', title: '@google/genai' }),
  row('ai-sdk-openai-chat', 'openai-chat', 'ai-sdk', { package: 'ai', title: 'AI SDK, openai.chat' }),
  row('ai-sdk-openai-compatible', 'openai-chat', 'ai-sdk', { package: 'ai', title: 'AI SDK, openai-compatible' }),
  row('ai-sdk-openai', 'openai-responses', 'ai-sdk', { package: 'ai', title: 'AI SDK, openai' }),
  row('ai-sdk-anthropic', 'anthropic-messages', 'ai-sdk', { package: 'ai', title: 'AI SDK, anthropic' }),
  row('ai-sdk-google', 'gemini', 'ai-sdk', { package: 'ai', title: 'AI SDK, google' }),
  row('openai-agents-chat', 'openai-chat', 'openai-agents', { package: '@openai/agents', title: 'OpenAI Agents SDK, chat' }),
  row('openai-agents-responses', 'openai-responses', 'openai-agents', {
    package: '@openai/agents',
    title: 'OpenAI Agents SDK, responses',
  }),
  row('claude-code', 'anthropic-messages', 'claude-code', { package: '@anthropic-ai/claude-code', title: 'Claude Code' }),
  row('codex', 'openai-responses', 'codex', { package: '@openai/codex', title: 'Codex' }),
  row('gemini-cli', 'gemini', 'gemini-cli', { package: '@google/gemini-cli', title: 'Gemini CLI' }),
  ...wires('opencode', 'opencode', 'opencode-ai', 'OC_NPM', {
    'openai-chat': '@ai-sdk/openai-compatible',
    'openai-responses': '@ai-sdk/openai',
    'anthropic-messages': '@ai-sdk/anthropic',
    gemini: '@ai-sdk/google',
  }),
  ...wires('pi', 'pi', '@mariozechner/pi-coding-agent', 'PI_API', {
    'openai-chat': 'openai-completions',
    'openai-responses': 'openai-responses',
    'anthropic-messages': 'anthropic-messages',
    gemini: 'google-generative-ai',
  }),
  row('cline', 'openai-chat', 'cline', { package: 'cline', title: 'Cline' }),
  row('claude-code-latest', 'anthropic-messages', 'claude-code', {
    ...LATEST,
    runner: 'claude-code',
    package: '@anthropic-ai/claude-code',
    title: 'Claude Code, newest',
  }),
  row('claude-agent-sdk', 'anthropic-messages', 'claude-agent-sdk', {
    ...LATEST,
    package: '@anthropic-ai/claude-agent-sdk',
    title: 'Claude Agent SDK',
  }),
  ...wires('kimi-code', 'Kimi Code', '@moonshot-ai/kimi-code', 'KIMI_TYPE', {
    'openai-chat': 'openai',
    'openai-responses': 'openai_responses',
    'anthropic-messages': 'anthropic',
    gemini: 'google-genai',
  }).map(newest),
  ...wires('qwen-code', 'Qwen Code', '@qwen-code/qwen-code', 'QWEN_AUTH', {
    'openai-chat': 'openai',
    'anthropic-messages': 'anthropic',
    gemini: 'gemini',
  }).map(newest),
  ...wires('continue', 'Continue', '@continuedev/cli', 'CN_PROVIDER', {
    'openai-chat': 'openai',
    'anthropic-messages': 'anthropic',
  }),
  row('grok-cli', 'openai-chat', 'grok-cli', { ...LATEST, package: '@vibe-kit/grok-cli', title: 'Grok CLI', isWhole: true }),
  row('langchain-openai', 'openai-chat', 'langchain', { package: '@langchain/openai', title: 'LangChain, chat' }),
  row('langchain-openai-responses', 'openai-responses', 'langchain', {
    package: '@langchain/openai',
    title: 'LangChain, responses',
  }),
  row('langchain-anthropic', 'anthropic-messages', 'langchain', {
    package: '@langchain/anthropic',
    title: 'LangChain, anthropic',
  }),
  row('langchain-google', 'gemini', 'langchain', { package: '@langchain/google-genai', title: 'LangChain, google' }),
];

/** Clients that rely on stored responses. `driver`: in the folder `state`; `hasTools`: its first turn calls a tool. */
export const STATE_CLIENTS = [
  {
    ...row('ai-sdk-state', 'openai-responses', 'ai-sdk', { package: 'ai', title: 'AI SDK, openai' }),
    driver: 'ai-sdk',
    how: '`item_reference`',
    hasTools: true,
  },
  {
    ...row('openai-agents-state', 'openai-responses', 'openai-agents', { package: '@openai/agents', title: 'OpenAI Agents SDK' }),
    driver: 'openai-agents',
    how: '`previous_response_id`',
    hasTools: true,
  },
  {
    ...row('sdk-openai-state', 'openai-responses', 'sdk-openai', { package: 'openai', title: 'openai SDK' }),
    driver: 'sdk-openai',
    how: '`background`, `starting_after`, `previous_response_id`',
    hasTools: false,
  },
];

function newest(client) {
  return { ...client, ...LATEST };
}

/** A client that speaks several protocols: one row each. */
function wires(runner, title, pack, variable, choices) {
  return Object.entries(choices).map(([protocol, choice]) =>
    row(`${runner}-${UPSTREAMS[protocol].provider}`, protocol, runner, {
      runner,
      package: pack,
      title: `${title}, ${UPSTREAMS[protocol].provider}`,
      env: { [variable]: choice },
    }),
  );
}

const ALL = Object.keys(UPSTREAMS);
const NOT_GEMINI = ALL.filter((protocol) => protocol !== 'gemini');
const CHAT = ['openai-chat'];
const MESSAGES = ['anthropic-messages'];
const RESPONSES = ['openai-responses'];
const GEMINI = ['gemini'];

/**
 * What the upstream does differently. `cannot`: why no gateway can make a response of it (a client that retries by itself passes all the same).
 * `once`: only the first response of a process is so. `seconds`: how long a client gets, where it can only fail.
 */
export const VARIANTS = [
  { id: 'thinking', what: 'sends reasoning first', in: ALL },
  { id: 'parallel', what: 'calls two tools at once', in: ALL },
  { id: 'notext', what: 'calls a tool without text', in: ALL },
  { id: 'onechunk', what: 'whole stream in one chunk', in: ALL },
  { id: 'bytes', what: 'chunks of seven bytes', in: ALL },
  { id: 'crlf', what: 'lines end in CR LF', in: ALL },
  { id: 'nousage', what: 'no usage', in: ALL },
  { id: 'stopreason', what: 'finish reason "stop" with a tool call', in: ALL },
  { id: 'objargs', what: 'tool arguments in the wrong form', in: ALL },
  { id: 'noid', what: 'no ids on tool calls or items', in: NOT_GEMINI },
  { id: 'noindex', what: 'no indexes', in: ALL },
  { id: 'repeatname', what: "the tool's name in every delta", in: CHAT },
  { id: 'noevent', what: 'no event: lines', in: [...MESSAGES, ...RESPONSES] },
  { id: 'eventline', what: 'event: lines', in: [...CHAT, ...GEMINI] },
  { id: 'noblockstop', what: 'blocks and items never end', in: [...MESSAGES, ...RESPONSES] },
  { id: 'minimal', what: 'only the last event of each item', in: [...MESSAGES, ...RESPONSES, ...GEMINI] },
  { id: 'emptyoutput', what: 'response.completed without its output', in: RESPONSES },
  { id: 'nodone', what: 'no end marker', in: [...CHAT, ...MESSAGES] },
  { id: 'done', what: '[DONE] where it does not belong', in: [...RESPONSES, ...GEMINI] },
  { id: 'comment', what: 'comments between the events', in: ALL },
  { id: 'unkevent', what: 'an unknown event', in: [...MESSAGES, ...RESPONSES] },
  { id: 'unkfield', what: 'unknown fields', in: ALL },
  { id: 'extra', what: 'comments, unknown events and fields', in: ALL },
  { id: 'noctype', what: 'content-type: text/plain', in: ALL },
  { id: 'json', what: 'JSON although a stream was requested', in: ALL },
  { id: 'geminiid', what: 'ids on function calls', in: GEMINI },
  { id: 'noaux', what: '404 for models and token counts', in: ALL },
  { id: 'loop', what: 'four rounds of tool calls, two of them at once', in: ALL },
  { id: 'strictloop', what: "four rounds, and a vendor's checks of every request", in: ALL },
  { id: 'needreason', what: 'demands its reasoning back with tool calls', in: CHAT },
  { id: 'nomaxtokens', what: 'refuses max_tokens', in: CHAT },
  { id: 'noadaptive', what: 'refuses adaptive thinking and output_config', in: MESSAGES },
  { id: 'e429', what: '429, once', in: ALL, once: true },
  { id: 'e503', what: '503, once', in: ALL, once: true },
  { id: 'nofinish', what: 'ends without a finish reason or end marker', in: ALL, cannot: 'a truncated response looks the same' },
  { id: 'miderror', what: 'an error in the middle, once', in: ALL, once: true, cannot: 'half of the response was sent' },
  {
    id: 'abort',
    what: 'closes the connection in the middle, once',
    in: ALL,
    once: true,
    cannot: 'half of the response was sent',
  },
  { id: 'hang', what: 'stops in the middle and stays connected', in: ALL, seconds: 20, cannot: 'the rest never comes' },
  { id: 'e401', what: '401, always', in: ALL, cannot: 'the key is wrong' },
];
