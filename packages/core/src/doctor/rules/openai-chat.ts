/** Chat Completions as compatible servers speak it. */
export const OPENAI_CHAT_RULES = {
  'chat/tool-id-empty': {
    title: 'A tool-call delta carries a blank id',
    explanation:
      'Later deltas of a call have id "" or null where the standard leaves the field out. Clients that take any id for a new call cut the arguments in pieces. A blank id counts as absent.',
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
    title: 'A tool call never got an id',
    explanation:
      'No delta of the call has an id, so that a result could not name it. A stable id is derived from the response and the position.',
    severity: 'error',
    providers: ['Ollama', 'Gemini bridges'],
  },
  'chat/tool-id-number': {
    title: 'A tool-call id is a number',
    explanation: 'The id is a JSON number. It is read as text.',
    severity: 'error',
    providers: ['ai.getdeepin.org'],
  },
  'chat/tool-id-duplicate': {
    title: 'Two tool calls share one id',
    explanation:
      'A second call repeats the id of the first. The later call gets a derived id, so that results can be told apart.',
    severity: 'error',
    providers: ['DeepSeek', 'Zhipu/GLM', 'OpenRouter'],
  },
  'chat/tool-index-missing': {
    title: 'A tool-call delta has no index',
    explanation: 'The standard tells parallel calls apart by index. Without one the id, the name and the open document decide.',
    severity: 'error',
    providers: ['Gemini OpenAI-compat', 'Mistral', 'grok2api', 'chatanywhere', 'older Ollama builds'],
  },
  'chat/tool-index-string': {
    title: 'A tool-call index is text',
    explanation: 'The index is "0" instead of 0. Text that looks like an integer is read as one.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'chat/tool-index-wild': {
    title: 'A tool-call index is negative or no integer',
    explanation: 'A negative index is taken as an opaque key; anything that is no integer counts as no index at all.',
    severity: 'error',
    providers: ['Zhipu GLM-4.5'],
  },
  'chat/tool-index-reused': {
    title: 'One index is used for several tool calls',
    explanation:
      'Every parallel call has index 0. Clients that merge by index run one call with the arguments of all. A name after a closed document opens a new call.',
    severity: 'error',
    providers: ['Ollama', 'Gemini bridges', 'Gemini OpenAI-compat', 'LibreChat backends'],
  },
  'chat/tool-type-case': {
    title: 'A tool-call type is not lower case',
    explanation: 'The type is "FUNCTION". It is read in lower case.',
    severity: 'warning',
    providers: ['LiteLLM-fronted on-prem gateways'],
  },
  'chat/tool-function-null': {
    title: 'A tool-call delta has function: null',
    explanation: 'The function object is null; the delta is read as one without a name and without arguments.',
    severity: 'warning',
    providers: ['LiteLLM-shaped streams'],
  },
  'chat/tool-name-empty': {
    title: 'A tool-call delta carries a blank name',
    explanation:
      'The name is "", null or the text "null" on later deltas. Clients that overwrite lose the name. A blank name counts as absent.',
    severity: 'warning',
    providers: ['DeepSeek relays', 'Fireworks', 'SGLang', 'LiteLLM-fronted on-prem gateways'],
  },
  'chat/tool-name-repeated': {
    title: 'The tool name is sent on every delta',
    explanation: 'Clients that concatenate get "shellshell". An equal name is kept once.',
    severity: 'warning',
    providers: ['Fireworks AI', 'Anthropic bridges', 'Codex adapters'],
  },
  'chat/tool-name-fragmented': {
    title: 'The tool name comes in pieces',
    explanation:
      'Later deltas add to the name, or repeat it longer. Pieces are joined; a name that begins with the one before replaces it.',
    severity: 'error',
    providers: ['Gemini (via Continue)', 'NVIDIA Switchyard upstreams', 'stub servers'],
  },
  'chat/tool-name-late': {
    title: 'The tool name changed after arguments had begun',
    explanation: 'The block was already announced under the shorter name; the final message carries the whole one.',
    severity: 'error',
    providers: ['stub servers'],
  },
  'chat/tool-name-missing': {
    title: 'A tool call never got a name',
    explanation: 'No delta of the call has a name. The call is kept under a made-up name, so that its arguments are not lost.',
    severity: 'error',
    providers: ['naive local servers'],
  },
  'chat/tool-call-resumed': {
    title: 'A finished tool call goes on after another has begun',
    explanation:
      'An id, a field, or more arguments for a call whose document was closed and which was passed on. The final message carries what came; a live reader of events is told at the end.',
    severity: 'error',
    providers: ['snapshot emitters', 'OpenAI-compatible gateways'],
  },
  'chat/tool-args-null': {
    title: 'Tool arguments are null',
    explanation: 'The opener has arguments: null where the standard has an empty string. It counts as absent.',
    severity: 'warning',
    providers: ['Fireworks firefunction-v2', 'vLLM', 'DeepInfra'],
  },
  'chat/tool-args-object': {
    title: 'Tool arguments are an object',
    explanation:
      'The arguments are JSON, not text that holds JSON. They are written as text; a later object replaces an earlier one.',
    severity: 'error',
    providers: ['Mistral-shaped upstreams', 'Zhipu GLM-4.5'],
  },
  'chat/tool-args-cumulative': {
    title: 'Each fragment repeats the arguments so far',
    explanation: 'Every fragment begins with the one before it. Only the last one is the text.',
    severity: 'error',
    providers: ['snapshot emitters'],
  },
  'chat/tool-args-leading-empty-object': {
    title: 'An empty object precedes the arguments',
    explanation:
      'The opener has "{}", and the real arguments follow. Concatenated they are no JSON; the first object is dropped.',
    severity: 'error',
    providers: ['Bedrock via OpenAI-compat'],
  },
  'chat/tool-args-sent-again': {
    title: 'The whole arguments are sent once more',
    explanation:
      'After the fragments the complete arguments come again. Concatenated they are no JSON; the first document counts.',
    severity: 'error',
    providers: ['local GLM servers', 'Eliza Cloud'],
  },
  'chat/tool-args-invalid': {
    title: 'Tool arguments are not JSON',
    explanation: 'The text was cut or garbled. It is kept word for word and flagged; a tool must not be run with it.',
    severity: 'error',
    providers: ['any server at its token limit'],
  },
  'chat/tool-args-not-object': {
    title: 'Tool arguments are JSON but no object',
    explanation: 'A JSON string that holds JSON, or another bare value. It is kept word for word.',
    severity: 'warning',
    providers: ['vLLM hermes parser', 'Groq'],
  },
  'chat/legacy-function-call': {
    title: 'The deprecated function_call is used',
    explanation: 'The call comes in the form from before tool calls, without an id. It is read as a tool call with a derived id.',
    severity: 'info',
    providers: ['older compatible servers'],
  },
  'chat/finish-empty': {
    title: 'finish_reason is an empty string',
    explanation:
      'Chunks in the middle say "" instead of null. Clients that test for null stop at the first chunk. It counts as absent.',
    severity: 'warning',
    providers: ['Ollama', 'SGLang 0.4.3'],
  },
  'chat/finish-missing': {
    title: 'The message ends without a finish_reason',
    explanation: 'The official client throws on it. The reason is taken from what the message holds: calls, or text.',
    severity: 'error',
    providers: ['Snowflake'],
  },
  'chat/finish-nonstandard': {
    title: 'finish_reason is not one of the standard values',
    explanation: 'Known values of other vocabularies are mapped, unknown ones read as a normal end; the original value is kept.',
    severity: 'warning',
    providers: ['Z.ai / Zhipu', 'LM Studio gateways', 'bedrock-access-gateway'],
  },
  'chat/finish-repeated': {
    title: 'finish_reason is sent more than once',
    explanation: 'The last one wins, unless it is weaker than an earlier one: "stop" does not replace "length" or "tool_calls".',
    severity: 'info',
    providers: ['OpenRouter', 'one-api', 'Open WebUI'],
  },
  'chat/finish-stop-with-calls': {
    title: 'finish_reason is "stop" although there are tool calls',
    explanation: 'Agents that trust it never run the tools. It is read as tool_calls; the original value is kept.',
    severity: 'error',
    providers: ['Gemini OpenAI-compat', 'mlx-vlm', 'Cohere', 'vLLM named tool_choice'],
  },
  'chat/content-after-finish': {
    title: 'Content follows the finish_reason',
    explanation: 'Clients that stop at the finish reason lose the answer. Everything up to the end of the stream is read.',
    severity: 'error',
    providers: ['Open WebUI', 'Anthropic via LiteLLM'],
  },
  'chat/delta-missing': {
    title: 'A choice has no delta',
    explanation: 'The delta is missing or null on chunks that only carry a finish reason or filter results. It counts as empty.',
    severity: 'warning',
    providers: ['Azure OpenAI (async filter)', 'MiniMax'],
  },
  'chat/text-completion': {
    title: 'The chunks are those of the old completions',
    explanation: 'A choice has `text` in place of a delta. It is read as the text of the message.',
    severity: 'error',
    providers: ['servers whose chat route answers with /v1/completions'],
  },
  'chat/choices-missing': {
    title: 'A chunk has no choices',
    explanation:
      'The field is null or missing: a ping of another protocol, or a usage chunk. What is known of it is read, the rest skipped.',
    severity: 'info',
    providers: ['Anthropic OpenAI-compat endpoint', 'proxies'],
  },
  'chat/message-instead-of-delta': {
    title: 'A whole message stands where a delta should be',
    explanation: 'The server did not stream, or repeats everything at the end. The message is read for what no delta carried.',
    severity: 'warning',
    providers: ['MiniMax', 'fake-streaming proxies'],
  },
  'chat/content-parts': {
    title: 'The content of a delta is a list of parts',
    explanation: 'Text parts are text, thinking parts are reasoning; other parts are kept as they are.',
    severity: 'warning',
    providers: ['Mistral'],
  },
  'chat/role-blank': {
    title: 'The role of a delta is blank',
    explanation: 'The role is "" or null. It counts as absent.',
    severity: 'info',
    providers: ['MiniMax M2.5', 'Cloudflare Workers AI'],
  },
  'chat/reasoning-twice': {
    title: 'Reasoning is sent in two fields at once',
    explanation: 'reasoning and reasoning_content carry the same text. One of them is read.',
    severity: 'warning',
    providers: ['gateways that dual-emit'],
  },
  'chat/id-missing': {
    title: 'The completion has no id',
    explanation: 'No chunk up to the first content has an id. A stable one is derived.',
    severity: 'info',
    providers: ['local servers'],
  },
  'chat/id-varies': {
    title: 'The id changes within the stream',
    explanation: 'The first non-blank id is kept.',
    severity: 'info',
    providers: ['GitHub Copilot', 'Perplexity'],
  },
  'chat/error-in-stream': {
    title: 'An error arrives inside a successful response',
    explanation:
      'A chunk, a choice or the whole body is an error although the status said 200. Everything read so far is kept, and the error is reported.',
    severity: 'error',
    providers: ['OpenRouter', 'hosted_vllm', 'LM Studio', 'Groq'],
  },
} as const;
