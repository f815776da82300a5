/**
 * Violations that only the doctor and the repair report: the decoders accept them, other clients do not. Their texts are
 * tables of their own, so that programs that only read streams do not load them.
 */
import type { RuleFacts, RuleText } from './rule.ts';

/** Habits of servers in any event stream. */
export const SSE_HABITS = {
  'sse/empty-stream': {
    title: 'The stream is empty',
    remedy: 'Sluice reports an error that can be retried.',
  },
  'sse/not-a-stream': {
    title: 'The body is not a response of any protocol',
    remedy: 'Sluice reports an error that describes what was found.',
  },
  'sse/lone-surrogate': {
    title: 'A text contains half of a surrogate pair',
    remedy: 'Sluice joins the halves; one that stays alone becomes U+FFFD.',
  },
} as const;

SSE_HABITS satisfies Record<`sse/${string}`, RuleText>;

/** Habits of servers in OpenAI Chat. */
export const OPENAI_CHAT_HABITS = {
  'chat/ended-early': {
    title: 'The stream ends in the middle of the message',
    remedy: 'Sluice keeps what was read and marks the message as incomplete; it never invents a reason.',
  },
  'chat/tool-type-missing': {
    title: 'A tool call has no type',
    remedy: 'Sluice derives the type from the content of the call and sends it.',
  },
  'chat/tool-id-late': {
    title: 'The id of a tool call comes after its first delta',
    remedy: 'Sluice assigns the id to the open call at that index.',
  },
  'chat/tool-index-gap': {
    title: 'Tool-call indexes are not 0, 1, 2 …',
    remedy: 'Sluice treats the index as an opaque key and renumbers the calls.',
  },
  'chat/tool-index-drifts': {
    title: 'Fragments of one call have different indexes',
    remedy: 'Sluice adds it to the call whose arguments are open.',
  },
  'chat/tool-index-twice': {
    title: 'One chunk has the same tool-call index twice',
    remedy: 'Sluice reads the entries in order, each into its call.',
  },
  'chat/tool-header-repeated': {
    title: 'The id or type of a call is sent on every delta',
    remedy: 'Sluice keeps equal values once.',
  },
  'chat/tool-calls-blank': {
    title: 'tool_calls is empty or null',
    remedy: 'Sluice treats it as absent.',
  },
  'chat/tool-calls-object': {
    title: 'tool_calls is an object instead of a list',
    remedy: 'Sluice reads it as a list with one call.',
  },
  'chat/role-missing': {
    title: 'No delta has a role',
    remedy: 'Sluice adds role "assistant".',
  },
  'chat/role-repeated': {
    title: 'The role is sent on every delta',
    remedy: 'Sluice reads it once.',
  },
  'chat/finish-with-content': {
    title: 'The finish_reason shares its chunk with content',
    remedy: 'Sluice reads the delta first, then the reason.',
  },
  'chat/usage-with-choices': {
    title: 'The usage shares its chunk with choices',
    remedy: 'Sluice reads the usage in any chunk.',
  },
  'chat/usage-repeated': {
    title: 'The usage is sent more than once',
    remedy: 'Sluice uses the last value of each field and never adds them up.',
  },
  'chat/usage-elsewhere': {
    title: 'The usage is only in a vendor field',
    remedy: 'Sluice reads it from there and sends it as usage.',
  },
  'chat/envelope-incomplete': {
    title: 'A chunk lacks required fields',
    remedy: 'Sluice sends chunks with all of them.',
  },
  'chat/choice-index-missing': {
    title: 'A choice has no index',
    remedy: 'Sluice treats a choice without an index as the first and sends the index.',
  },
  'chat/model-varies': {
    title: 'The model changes within the stream',
    remedy: 'Sluice keeps the first model.',
  },
} as const;

OPENAI_CHAT_HABITS satisfies Record<`chat/${string}`, RuleText>;

/** Habits of servers in Anthropic Messages. */
export const ANTHROPIC_MESSAGES_HABITS = {
  'anthropic/usage-missing': {
    title: 'message_start or message_delta has no usage',
    remedy: 'Sluice keeps the counts that arrived and sends both events with a usage.',
  },
  'anthropic/message-start-incomplete': {
    title: 'The message of message_start is incomplete',
    remedy: 'Sluice fills in the constant fields and sends a complete message.',
  },
  'anthropic/input-missing': {
    title: 'A call has no input object',
    remedy: 'Sluice starts the call with an empty input.',
  },
  'anthropic/input-in-start': {
    title: 'The whole input is in content_block_start',
    remedy: 'Sluice reads the input from the start and sends it as deltas.',
  },
} as const;

ANTHROPIC_MESSAGES_HABITS satisfies Record<`anthropic/${string}`, RuleText>;

/** Habits of servers in Gemini. */
export const GEMINI_HABITS = {
  'gemini/event-line': {
    title: 'A Gemini frame has an event line',
    remedy: 'Sluice ignores the line.',
  },
  'gemini/comment': {
    title: 'A comment in a Gemini stream',
    remedy: 'Sluice ignores comments and sends none.',
  },
} as const;

GEMINI_HABITS satisfies Record<`gemini/${string}`, RuleText>;

/** The facts about these rules, for the doctor and the pages. */
export const HABIT_FACTS = {
  'sse/empty-stream': {
    explanation:
      'The body is empty or has only comments or the sentinel. Clients show an empty response, or wait until they time out.',
    severity: 'error',
    providers: ['overloaded upstreams behind a gateway', 'aggregators'],
  },
  'sse/not-a-stream': {
    explanation:
      'A successful status came with other content, such as the HTML page of a proxy. Clients that skip what they cannot parse show an empty response.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/lone-surrogate': {
    explanation:
      'A string ends with one half of a surrogate pair or begins with the other: a character was split between two deltas. Clients that encode each delta as UTF-8 lose both halves.',
    severity: 'warning',
    providers: ['servers that stream tokens byte by byte'],
  },
  'chat/ended-early': {
    explanation:
      'Neither a finish_reason nor [DONE] was sent. The openai SDK throws; clients that do not check run incomplete calls or show a truncated text as complete.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'chat/tool-type-missing': {
    explanation: 'No delta of the call has type: "function". The stream helper of the openai SDK throws.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/tool-id-late': {
    explanation: 'The call starts without an id, which follows later. Clients that start a new call at every id split it in two.',
    severity: 'warning',
    providers: ['OpenAI-compatible gateways'],
  },
  'chat/tool-index-gap': {
    explanation:
      'The first index is not 0, or one is skipped; often it is the number of a content block in another protocol. Clients that store calls by index get a list with holes.',
    severity: 'error',
    providers: ['Anthropic bridges'],
  },
  'chat/tool-index-drifts': {
    explanation:
      'A delta with arguments, but without id and name, has an index that no call was opened with. Clients that merge by index create a call without a name.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/tool-index-twice': {
    explanation: 'Two entries of one list belong to the same call. Clients that build a table from the list keep one of them.',
    severity: 'warning',
    providers: ['gateways that join chunks'],
  },
  'chat/tool-header-repeated': {
    explanation: 'The standard sends them once. Clients that concatenate get "functionfunction".',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/tool-calls-blank': {
    explanation: 'The field is sent although there is no call. Clients that check for its presence assume a call.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/tool-calls-object': {
    explanation: 'A single call is sent instead of a list of calls. Clients that iterate over a list fail or see no call.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'chat/role-missing': {
    explanation:
      'The standard sends role: "assistant" in the first delta. The stream helper of the openai SDK throws without it.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/role-repeated': {
    explanation: 'The standard sends it once, in the first delta. Clients that concatenate get "assistantassistant".',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/finish-with-content': {
    explanation:
      'The standard ends with a chunk whose delta is empty. Clients that stop at finish_reason before they read the delta lose the last content.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-with-choices': {
    explanation:
      'The standard sends the usage in a separate last chunk with empty choices. Clients that read it only there find none.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-repeated': {
    explanation: 'Several chunks have a usage, usually a growing one. Clients that add them up count too many tokens.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-elsewhere': {
    explanation: 'The counts are in x_groq.usage, and the standard usage field is missing. Clients find no usage.',
    severity: 'info',
    providers: ['groq'],
  },
  'chat/envelope-incomplete': {
    explanation:
      'object, created or model is missing, blank or of the wrong type. openai-node accepts that; clients that validate types reject the chunk.',
    severity: 'warning',
    providers: ['azure', 'github-copilot', 'compatible servers'],
  },
  'chat/choice-index-missing': {
    explanation: 'The standard numbers the choices, even a single one. The openai SDK throws without an index.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/model-varies': {
    explanation: 'Chunks of one completion have different models.',
    severity: 'info',
    providers: ['routers'],
  },
  'anthropic/usage-missing': {
    explanation: 'In the standard both have a usage, and the official SDK throws without it.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-start-incomplete': {
    explanation:
      'type, role, model or the empty content list is missing. The official SDK appends blocks to the content and fails at the first block.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-missing': {
    explanation:
      'In the standard the input starts as an empty object. Clients that validate the block reject it before the arguments arrive.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-in-start': {
    explanation:
      'In the standard a call starts with an empty object, and the arguments follow as deltas. Clients that read only the deltas call the tool without arguments. Calls made by code execution of Anthropic are complete at the start by design and are not reported.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'gemini/event-line': {
    explanation:
      'Gemini frames have only data lines. The official SDK, Gemini CLI and LangChain drop or reject a frame that begins with another field.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/comment': {
    explanation: 'Comments are allowed in SSE, but Gemini sends none, and Gemini CLI and LangChain fail on them.',
    severity: 'error',
    providers: ['proxies'],
  },
} as const;

HABIT_FACTS satisfies Record<
  keyof typeof SSE_HABITS | keyof typeof OPENAI_CHAT_HABITS | keyof typeof ANTHROPIC_MESSAGES_HABITS | keyof typeof GEMINI_HABITS,
  RuleFacts
>;
