import type { Rule } from './rule.ts';

/** Violations that only the doctor reports: the decoders accept them, other clients do not. */
export const HABIT_RULES = {
  'sse/empty-stream': {
    title: 'The stream is empty',
    explanation:
      'The body is empty or has only comments or the sentinel. Clients show an empty response, or wait until they time out.',
    remedy: 'Sluice reports an error that can be retried.',
    severity: 'error',
    providers: ['overloaded upstreams behind a gateway', 'aggregators'],
  },
  'sse/not-a-stream': {
    title: 'The body is not a response of any protocol',
    explanation:
      'A successful status came with other content, such as the HTML page of a proxy. Clients that skip what they cannot parse show an empty response.',
    remedy: 'Sluice reports an error that describes what was found.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/lone-surrogate': {
    title: 'A text contains half of a surrogate pair',
    explanation:
      'A string ends with one half of a surrogate pair or begins with the other: a character was split between two deltas. Clients that encode each delta as UTF-8 lose both halves.',
    remedy: 'Sluice holds the first half until the second arrives and joins them; a half that stays alone becomes U+FFFD.',
    severity: 'warning',
    providers: ['servers that stream tokens byte by byte'],
  },
  'chat/ended-early': {
    title: 'The stream ends in the middle of the message',
    explanation:
      'Neither a finish_reason nor [DONE] was sent. The openai SDK throws; clients that do not check run incomplete calls or show a truncated text as complete.',
    remedy: 'Sluice keeps what was read and marks the message as incomplete; it never invents a reason.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'chat/tool-type-missing': {
    title: 'A tool call has no type',
    explanation: 'No delta of the call has type: "function". The stream helper of the openai SDK throws.',
    remedy: 'Sluice derives the type from the content of the call and sends it.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/tool-id-late': {
    title: 'The id of a tool call comes after its first delta',
    explanation: 'The call starts without an id, which follows later. Clients that start a new call at every id split it in two.',
    remedy: 'Sluice assigns the id to the open call at that index.',
    severity: 'warning',
    providers: ['OpenAI-compatible gateways'],
  },
  'chat/tool-index-gap': {
    title: 'Tool-call indexes are not 0, 1, 2 …',
    explanation:
      'The first index is not 0, or one is skipped; often it is the number of a content block in another protocol. Clients that store calls by index get a list with holes.',
    remedy: 'Sluice treats the index as an opaque key and renumbers the calls.',
    severity: 'error',
    providers: ['Anthropic bridges'],
  },
  'chat/tool-index-drifts': {
    title: 'Fragments of one call have different indexes',
    explanation:
      'A delta with arguments, but without id and name, has an index that no call was opened with. Clients that merge by index create a call without a name.',
    remedy: 'Sluice adds it to the call whose arguments are open.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/tool-index-twice': {
    title: 'One chunk has the same tool-call index twice',
    explanation: 'Two entries of one list belong to the same call. Clients that build a table from the list keep one of them.',
    remedy: 'Sluice reads the entries in order, each into its call.',
    severity: 'warning',
    providers: ['gateways that join chunks'],
  },
  'chat/tool-header-repeated': {
    title: 'The id or type of a call is sent on every delta',
    explanation: 'The standard sends them once. Clients that concatenate get "functionfunction".',
    remedy: 'Sluice keeps equal values once.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/tool-calls-blank': {
    title: 'tool_calls is empty or null',
    explanation: 'The field is sent although there is no call. Clients that check for its presence assume a call.',
    remedy: 'Sluice treats it as absent.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/tool-calls-object': {
    title: 'tool_calls is an object instead of a list',
    explanation: 'A single call is sent instead of a list of calls. Clients that iterate over a list fail or see no call.',
    remedy: 'Sluice reads it as a list with one call.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'chat/role-missing': {
    title: 'No delta has a role',
    explanation:
      'The standard sends role: "assistant" in the first delta. The stream helper of the openai SDK throws without it.',
    remedy: 'Sluice adds role "assistant".',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/role-repeated': {
    title: 'The role is sent on every delta',
    explanation: 'The standard sends it once, in the first delta. Clients that concatenate get "assistantassistant".',
    remedy: 'Sluice reads it once.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/finish-with-content': {
    title: 'The finish_reason shares its chunk with content',
    explanation:
      'The standard ends with a chunk whose delta is empty. Clients that stop at finish_reason before they read the delta lose the last content.',
    remedy: 'Sluice reads the delta first, then the reason.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-with-choices': {
    title: 'The usage shares its chunk with choices',
    explanation:
      'The standard sends the usage in a separate last chunk with empty choices. Clients that read it only there find none.',
    remedy: 'Sluice reads the usage in any chunk.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-repeated': {
    title: 'The usage is sent more than once',
    explanation: 'Several chunks have a usage, usually a growing one. Clients that add them up count too many tokens.',
    remedy: 'Sluice uses the last value of each field and never adds them up.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-elsewhere': {
    title: 'The usage is only in a vendor field',
    explanation: 'The counts are in x_groq.usage, and the standard usage field is missing. Clients find no usage.',
    remedy: 'Sluice reads it from there and sends it as usage.',
    severity: 'info',
    providers: ['groq'],
  },
  'chat/envelope-incomplete': {
    title: 'A chunk lacks required fields',
    explanation:
      'object, created or model is missing, blank or of the wrong type. openai-node accepts that; clients that validate types reject the chunk.',
    remedy: 'Sluice sends chunks with all of them.',
    severity: 'warning',
    providers: ['azure', 'github-copilot', 'compatible servers'],
  },
  'chat/choice-index-missing': {
    title: 'A choice has no index',
    explanation: 'The standard numbers the choices, even a single one. The openai SDK throws without an index.',
    remedy: 'Sluice treats a choice without an index as the first and sends the index.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/model-varies': {
    title: 'The model changes within the stream',
    explanation: 'Chunks of one completion have different models.',
    remedy: 'Sluice keeps the first model.',
    severity: 'info',
    providers: ['routers'],
  },
  'anthropic/usage-missing': {
    title: 'message_start or message_delta has no usage',
    explanation: 'In the standard both have a usage, and the official SDK throws without it.',
    remedy: 'Sluice keeps the counts that arrived and sends both events with a usage.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-start-incomplete': {
    title: 'The message of message_start is incomplete',
    explanation:
      'type, role, model or the empty content list is missing. The official SDK appends blocks to the content and fails at the first block.',
    remedy: 'Sluice fills in the constant fields and sends a complete message.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-missing': {
    title: 'content_block_start of a call has no input',
    explanation:
      'In the standard the input starts as an empty object. Clients that validate the block reject it before the arguments arrive.',
    remedy: 'Sluice starts the call with an empty input.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-in-start': {
    title: 'The whole input is in content_block_start',
    explanation:
      'In the standard a call starts with an empty object, and the arguments follow as deltas. Clients that read only the deltas call the tool without arguments. Calls made by code execution of Anthropic are complete at the start by design and are not reported.',
    remedy: 'Sluice reads the input from the start and sends it as deltas.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'gemini/event-line': {
    title: 'A Gemini frame has an event line',
    explanation:
      'Gemini frames have only data lines. The official SDK, Gemini CLI and LangChain drop or reject a frame that begins with another field.',
    remedy: 'Sluice ignores the line.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/comment': {
    title: 'A comment in a Gemini stream',
    explanation: 'Comments are allowed in SSE, but Gemini sends none, and Gemini CLI and LangChain fail on them.',
    remedy: 'Sluice ignores comments and sends none.',
    severity: 'error',
    providers: ['proxies'],
  },
} as const;

HABIT_RULES satisfies Record<`${string}/${string}`, Rule>;
