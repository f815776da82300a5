import type { RuleFacts, RuleText } from './rule.ts';

/** Violations of Chat Completions by compatible servers. */
export const OPENAI_CHAT_TEXTS = {
  'chat/tool-id-empty': {
    title: 'A tool-call delta carries a blank id',
    remedy: 'Sluice treats a blank id as absent.',
  },
  'chat/tool-id-missing': {
    title: 'A tool call has no id',
    remedy: 'Sluice derives a stable id from the response and the position.',
  },
  'chat/tool-id-number': {
    title: 'A tool-call id is a number',
    remedy: 'Sluice converts it to a string.',
  },
  'chat/tool-id-duplicate': {
    title: 'Two tool calls share one id',
    remedy: 'The later call gets a derived id, so that results can be matched.',
  },
  'chat/tool-index-missing': {
    title: 'A tool-call delta has no index',
    remedy: 'Sluice uses the id, the name and the open JSON document instead.',
  },
  'chat/tool-index-string': {
    title: 'A tool-call index is a string',
    remedy: 'Sluice reads a string of digits as an integer.',
  },
  'chat/tool-index-wild': {
    title: 'A tool-call index is negative or not an integer',
    remedy: 'Sluice treats a negative index as an opaque key and any other value as a missing index.',
  },
  'chat/tool-index-reused': {
    title: 'One index is used for several tool calls',
    remedy: 'Sluice starts a new call at a name that follows complete arguments.',
  },
  'chat/tool-type-case': {
    title: 'A tool-call type is not lower case',
    remedy: 'Sluice reads it as lower case.',
  },
  'chat/tool-function-null': {
    title: 'A tool-call delta has function: null',
    remedy: 'Sluice reads the delta as one without name and arguments.',
  },
  'chat/tool-name-empty': {
    title: 'A tool-call delta carries a blank name',
    remedy: 'Sluice treats a blank name as absent.',
  },
  'chat/tool-name-repeated': {
    title: 'The tool name is sent on every delta',
    remedy: 'Sluice keeps an equal name once.',
  },
  'chat/tool-name-fragmented': {
    title: 'The tool name comes in pieces',
    remedy: 'Sluice joins the pieces; a name that starts with the previous one replaces it.',
  },
  'chat/tool-name-late': {
    title: 'The tool name changed after the arguments began',
    remedy: 'The block was started with the shorter name; the final message has the complete one.',
  },
  'chat/tool-name-missing': {
    title: 'A tool call has no name',
    remedy: 'Sluice keeps the call under a placeholder name, so that its arguments are not lost.',
  },
  'chat/tool-call-resumed': {
    title: 'A finished tool call continues after another has begun',
    remedy: 'The final message has the late data; the event stream reports it at the end.',
  },
  'chat/tool-args-null': {
    title: 'Tool arguments are null',
    remedy: 'Sluice treats it as absent.',
  },
  'chat/tool-args-object': {
    title: 'Tool arguments are an object',
    remedy: 'Sluice converts them to a string; a later object replaces an earlier one.',
  },
  'chat/content-cumulative': {
    title: 'Each delta repeats the text sent so far',
    remedy: 'Sluice writes only what each one adds.',
  },
  'chat/tool-args-cumulative': {
    title: 'Each fragment repeats the arguments sent so far',
    remedy: 'Sluice uses only the last one.',
  },
  'chat/tool-args-leading-empty-object': {
    title: 'An empty object precedes the arguments',
    remedy: 'Sluice drops the first object.',
  },
  'chat/tool-args-sent-again': {
    title: 'The complete arguments are sent again',
    remedy: 'Sluice uses the first document.',
  },
  'chat/tool-args-invalid': {
    title: 'Tool arguments are not JSON',
    remedy: 'Sluice keeps them verbatim and marks the call as invalid; do not run the tool with them.',
  },
  'chat/tool-args-not-object': {
    title: 'Tool arguments are JSON but not an object',
    remedy: 'Sluice keeps them verbatim.',
  },
  'chat/legacy-function-call': {
    title: 'The deprecated function_call is used',
    remedy: 'Sluice reads it as a tool call with a derived id.',
  },
  'chat/finish-empty': {
    title: 'finish_reason is an empty string',
    remedy: 'Sluice treats it as absent.',
  },
  'chat/finish-missing': {
    title: 'The message ends without a finish_reason',
    remedy: 'Sluice derives the reason from the content: tool_calls if there are calls, otherwise stop.',
  },
  'chat/finish-nonstandard': {
    title: 'finish_reason is not one of the standard values',
    remedy: 'Sluice maps those of other protocols, treats the rest as a normal end, and keeps the original value.',
  },
  'chat/finish-repeated': {
    title: 'finish_reason is sent more than once',
    remedy: 'Sluice uses the last one, but "stop" does not replace "length" or "tool_calls".',
  },
  'chat/finish-stop-with-calls': {
    title: 'finish_reason is "stop" although there are tool calls',
    remedy: 'Sluice reads it as tool_calls and keeps the original value.',
  },
  'chat/finish-calls-missing': {
    title: 'finish_reason is "tool_calls" although there are no tool calls',
    remedy: 'Sluice reads it as stop and keeps the original value.',
  },
  'chat/content-after-finish': {
    title: 'Content follows the finish_reason',
    remedy: 'Sluice reads to the end of the stream.',
  },
  'chat/delta-missing': {
    title: 'A choice has no delta',
    remedy: 'Sluice treats it as empty.',
  },
  'chat/text-completion': {
    title: 'The chunks are those of legacy completions',
    remedy: 'Sluice reads it as the text of the message.',
  },
  'chat/choices-missing': {
    title: 'A chunk has no choices',
    remedy: 'Sluice reads the known fields and skips the rest.',
  },
  'chat/message-instead-of-delta': {
    title: 'A complete message instead of a delta',
    remedy: 'Sluice reads from the message what no delta contained.',
  },
  'chat/content-parts': {
    title: 'The content of a delta is a list of parts',
    remedy: 'Sluice reads text parts as text and thinking parts as reasoning, and keeps other parts unchanged.',
  },
  'chat/role-blank': {
    title: 'The role of a delta is blank',
    remedy: 'Sluice treats it as absent.',
  },
  'chat/reasoning-twice': {
    title: 'Reasoning is sent in two fields at once',
    remedy: 'Sluice reads one of them.',
  },
  'chat/reasoning-object': {
    title: 'Reasoning is a list or an object',
    remedy: 'Sluice reads its text. A signature in it is dropped.',
  },
  'chat/id-missing': {
    title: 'The completion has no id',
    remedy: 'Sluice derives a stable id.',
  },
  'chat/id-varies': {
    title: 'The id changes within the stream',
    remedy: 'Sluice keeps the first non-blank id.',
  },
  'chat/error-empty': {
    title: 'An empty error object comes with the choices',
    remedy: 'Sluice ignores it.',
  },
  'chat/error-in-stream': {
    title: 'An error arrives inside a successful response',
    remedy: 'Sluice keeps what was read and reports the error.',
  },
} as const;

OPENAI_CHAT_TEXTS satisfies Record<`chat/${string}`, RuleText>;

/** The facts about these rules, for the doctor and the pages. */
export const OPENAI_CHAT_FACTS = {
  'chat/tool-id-empty': {
    explanation:
      'Later deltas of a call have id "", null or the string "null" where the standard omits the field. Clients that start a new call at every id split the arguments.',
    severity: 'warning',
    providers: [
      'DashScope/Qwen',
      'DashScope/DeepSeek',
      'Cloudflare Workers AI',
      'SGLang',
      'Moonshot/Kimi',
      'Gemini via OpenRouter',
    ],
  },
  'chat/tool-id-missing': {
    explanation: 'No delta of the call has an id, so a result cannot refer to it.',
    severity: 'error',
    providers: ['Ollama', 'Gemini bridges'],
  },
  'chat/tool-id-number': {
    explanation: 'The id is a JSON number.',
    severity: 'error',
    providers: ['ai.getdeepin.org'],
  },
  'chat/tool-id-duplicate': {
    explanation: 'A second call repeats the id of the first.',
    severity: 'error',
    providers: ['DeepSeek', 'Zhipu/GLM', 'OpenRouter'],
  },
  'chat/tool-index-missing': {
    explanation: 'The standard separates parallel calls by index.',
    severity: 'error',
    providers: ['Gemini OpenAI-compat', 'Mistral', 'grok2api', 'chatanywhere', 'older Ollama builds'],
  },
  'chat/tool-index-string': {
    explanation: 'The index is "0" instead of 0.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'chat/tool-index-wild': {
    explanation: 'The index is below zero, a fraction, a list or another value that is not an integer.',
    severity: 'error',
    providers: ['Zhipu GLM-4.5'],
  },
  'chat/tool-index-reused': {
    explanation: 'Every parallel call has index 0. Clients that merge by index run one call with the arguments of all of them.',
    severity: 'error',
    providers: ['Ollama', 'Gemini bridges', 'Gemini OpenAI-compat', 'LibreChat backends'],
  },
  'chat/tool-type-case': {
    explanation: 'The type is "FUNCTION".',
    severity: 'error',
    providers: ['LiteLLM-fronted on-prem gateways'],
  },
  'chat/tool-function-null': {
    explanation: 'The function object is null where the standard omits it. Code that reads its fields fails.',
    severity: 'warning',
    providers: ['LiteLLM-shaped streams'],
  },
  'chat/tool-name-empty': {
    explanation: 'The name is "", null or the string "null" on later deltas. Clients that overwrite lose the name.',
    severity: 'error',
    providers: ['DeepSeek relays', 'Fireworks', 'SGLang', 'LiteLLM-fronted on-prem gateways'],
  },
  'chat/tool-name-repeated': {
    explanation: 'Clients that concatenate get "shellshell".',
    severity: 'warning',
    providers: ['Fireworks AI', 'Anthropic bridges', 'Codex adapters'],
  },
  'chat/tool-name-fragmented': {
    explanation: 'Later deltas append to the name, or repeat it with more characters.',
    severity: 'error',
    providers: ['Gemini (via Continue)', 'NVIDIA Switchyard upstreams', 'stub servers'],
  },
  'chat/tool-name-late': {
    explanation: 'A piece of the name, or a longer name, arrives after arguments were read.',
    severity: 'error',
    providers: ['stub servers'],
  },
  'chat/tool-name-missing': {
    explanation: 'No delta of the call has a name.',
    severity: 'error',
    providers: ['naive local servers'],
  },
  'chat/tool-call-resumed': {
    explanation: 'An id, a field or more arguments arrive for a call that was complete and already emitted.',
    severity: 'error',
    providers: ['snapshot emitters', 'OpenAI-compatible gateways'],
  },
  'chat/tool-args-null': {
    explanation: 'The first delta has arguments: null where the standard has an empty string.',
    severity: 'warning',
    providers: ['Fireworks firefunction-v2', 'vLLM', 'DeepInfra'],
  },
  'chat/tool-args-object': {
    explanation: 'The arguments are a JSON object instead of a string of JSON.',
    severity: 'error',
    providers: ['Mistral-shaped upstreams', 'Zhipu GLM-4.5'],
  },
  'chat/content-cumulative': {
    explanation:
      'The content of every delta starts with all the text before it. Clients that concatenate the deltas show it many times.',
    severity: 'error',
    providers: ['snapshot emitters'],
  },
  'chat/tool-args-cumulative': {
    explanation: 'Every fragment starts with the previous one.',
    severity: 'error',
    providers: ['snapshot emitters'],
  },
  'chat/tool-args-leading-empty-object': {
    explanation: 'The first delta has "{}", and the real arguments follow. Concatenated, they are not JSON.',
    severity: 'error',
    providers: ['Bedrock via OpenAI-compat'],
  },
  'chat/tool-args-sent-again': {
    explanation: 'After the fragments, the complete arguments are sent again. Concatenated, they are not JSON.',
    severity: 'error',
    providers: ['local GLM servers', 'Eliza Cloud'],
  },
  'chat/tool-args-invalid': {
    explanation: 'The text is truncated or garbled. Severity info when finish_reason shows that a limit or filter truncated it.',
    severity: 'error',
    providers: ['any server at its token limit'],
  },
  'chat/tool-args-not-object': {
    explanation: 'The arguments are a JSON string that contains JSON, or another value.',
    severity: 'warning',
    providers: ['vLLM hermes parser', 'Groq'],
  },
  'chat/legacy-function-call': {
    explanation: 'The call has the form from before tool_calls, without an id.',
    severity: 'info',
    providers: ['OpenAI, for requests with functions', 'older compatible servers'],
  },
  'chat/finish-empty': {
    explanation: 'Chunks in the middle have "" instead of null. Clients that check for null stop at the first chunk.',
    severity: 'warning',
    providers: ['Ollama', 'SGLang 0.4.3'],
  },
  'chat/finish-missing': {
    explanation: 'The official SDK throws.',
    severity: 'error',
    providers: ['Snowflake'],
  },
  'chat/finish-nonstandard': {
    explanation:
      'The value belongs to another protocol or is unknown. Typed clients reject it, and agents treat it as a normal end.',
    severity: 'warning',
    providers: ['Z.ai / Zhipu', 'LM Studio gateways', 'bedrock-access-gateway'],
  },
  'chat/finish-repeated': {
    explanation:
      'Several chunks have a finish_reason, sometimes different ones. Clients differ in whether they use the first or the last.',
    severity: 'info',
    providers: ['OpenRouter', 'one-api', 'Open WebUI'],
  },
  'chat/finish-stop-with-calls': {
    explanation:
      'Agents that trust it never run the tools. Severity info when all calls are of one function and there is no text: OpenAI does the same when tool_choice names the function.',
    severity: 'error',
    providers: ['Gemini OpenAI-compat', 'mlx-vlm', 'Cohere', 'vLLM named tool_choice'],
  },
  'chat/finish-calls-missing': {
    explanation: 'Agents wait for results of calls that do not exist, or send an empty turn.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/content-after-finish': {
    explanation: 'Clients that stop at finish_reason lose the content after it.',
    severity: 'error',
    providers: ['Open WebUI', 'Anthropic via LiteLLM'],
  },
  'chat/delta-missing': {
    explanation: 'The delta is missing or null on chunks that have only a finish_reason or filter results.',
    severity: 'warning',
    providers: ['Azure OpenAI (async filter)', 'MiniMax'],
  },
  'chat/text-completion': {
    explanation: 'A choice has `text` instead of a delta.',
    severity: 'error',
    providers: ['servers whose chat endpoint returns /v1/completions chunks'],
  },
  'chat/choices-missing': {
    explanation: 'The field is null or missing: a ping of another protocol, or a usage chunk.',
    severity: 'error',
    providers: ['Anthropic OpenAI-compat endpoint', 'proxies'],
  },
  'chat/message-instead-of-delta': {
    explanation: 'The server did not stream, or repeats everything at the end.',
    severity: 'warning',
    providers: ['MiniMax', 'fake-streaming proxies'],
  },
  'chat/content-parts': {
    explanation:
      'The content is a list, as in requests, where the standard has a string. Clients that append it to a string show [object Object].',
    severity: 'error',
    providers: ['Mistral'],
  },
  'chat/role-blank': {
    explanation: 'The role is "" or null.',
    severity: 'info',
    providers: ['MiniMax M2.5', 'Cloudflare Workers AI'],
  },
  'chat/reasoning-twice': {
    explanation: 'reasoning and reasoning_content contain the same text.',
    severity: 'warning',
    providers: ['gateways that dual-emit'],
  },
  'chat/reasoning-object': {
    explanation: 'The field is [{content, signature}] or {text} instead of a string. Clients lose it or show [object Object].',
    severity: 'warning',
    providers: ['SAP AI Core'],
  },
  'chat/id-missing': {
    explanation: 'No chunk up to the first content has an id.',
    severity: 'info',
    providers: ['local servers'],
  },
  'chat/id-varies': {
    explanation: 'Chunks of one completion have different ids.',
    severity: 'info',
    providers: ['GitHub Copilot', 'Perplexity'],
  },
  'chat/error-empty': {
    explanation: 'The field is {} instead of null or absent. The official SDK throws at it in a stream.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/error-in-stream': {
    explanation: 'A chunk, a choice or the whole body is an error, although the HTTP status is 200.',
    severity: 'error',
    providers: ['OpenRouter', 'hosted_vllm', 'LM Studio', 'Groq'],
  },
} as const;

OPENAI_CHAT_FACTS satisfies Record<keyof typeof OPENAI_CHAT_TEXTS, RuleFacts>;
