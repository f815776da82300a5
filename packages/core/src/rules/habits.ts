import type { Rule } from './rule.ts';

/** Departures that only the doctor reports: the decoders accept them, other clients do not. */
export const HABIT_RULES = {
  'sse/empty-stream': {
    title: 'The stream says nothing',
    explanation:
      'The body is empty, or holds only comments or the sentinel. Clients show an empty answer, or wait for one until they give up.',
    remedy: 'It is an error, and can be retried: an answer was asked for and none came.',
    severity: 'error',
    providers: ['overloaded upstreams behind a gateway', 'aggregators'],
  },
  'sse/not-a-stream': {
    title: 'The body is no answer of any protocol',
    explanation:
      'Something else came with a good status, such as the HTML page of a proxy. Clients that skip what they cannot read show an empty answer.',
    remedy: 'It is an error that says what was found.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/lone-surrogate': {
    title: 'A text holds half of a character',
    explanation:
      'A string ends in one half of a surrogate pair, or begins with the other: a character was cut between two deltas. Who writes each delta as UTF-8 loses both halves.',
    remedy: 'Halves are held until the other half comes, and joined; one that stays alone becomes U+FFFD.',
    severity: 'warning',
    providers: ['servers that stream tokens byte by byte'],
  },
  'chat/ended-early': {
    title: 'The stream ends in the middle of the message',
    explanation:
      'Neither a finish_reason nor [DONE] was sent. The openai SDK throws; clients that do not look run half a call, or take half a text for the answer.',
    remedy: 'What was read is kept and said to be incomplete; a reason is never invented.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'chat/tool-type-missing': {
    title: 'A tool call never says its type',
    explanation: 'No delta of the call has type: "function". The stream helper of the openai SDK throws.',
    remedy: 'The type is told by what the call holds, and written.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/tool-id-late': {
    title: 'The id of a tool call comes after its first delta',
    explanation: 'The call was opened without an id, which follows later. Clients that take an id for a new call cut it in two.',
    remedy: 'The id is given to the call that is open at that index.',
    severity: 'warning',
    providers: ['OpenAI-compatible gateways'],
  },
  'chat/tool-index-gap': {
    title: 'Tool-call indexes are not 0, 1, 2 …',
    explanation:
      'The first index is not 0, or one is skipped: often the number of a content block in another protocol. Clients that put calls into a list by index have holes in it.',
    remedy: 'An index is a name; the calls are counted anew.',
    severity: 'error',
    providers: ['Anthropic bridges'],
  },
  'chat/tool-index-drifts': {
    title: 'Fragments of one call come under other indexes',
    explanation:
      'A delta with arguments, but without an id and a name, has an index that no call was opened with. Clients that merge by index make a nameless call of it.',
    remedy: 'It goes to the call whose arguments are open.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/tool-index-twice': {
    title: 'One chunk has the same tool-call index twice',
    explanation: 'Two entries of one list belong to the same call. Clients that build a table from the list keep one of them.',
    remedy: 'Entries are read in order, each into its call.',
    severity: 'warning',
    providers: ['gateways that join chunks'],
  },
  'chat/tool-header-repeated': {
    title: 'The id or type of a call is sent on every delta',
    explanation: 'The standard sends them once. Clients that join texts get "functionfunction".',
    remedy: 'Equal values are kept once.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/tool-calls-blank': {
    title: 'tool_calls is empty or null',
    explanation: 'The field is sent although there is no call. Clients that test for its presence believe in one.',
    remedy: 'It counts as absent.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/tool-calls-object': {
    title: 'tool_calls is an object in place of a list',
    explanation: 'A single call stands where the list of calls should be. Clients that go through a list fail or see no call.',
    remedy: 'It is read as a list of one.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'chat/role-missing': {
    title: 'No delta says the role',
    explanation:
      'The standard sends role: "assistant" in the first delta. The stream helper of the openai SDK throws without it.',
    remedy: 'The role is written: an answer has only one.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/role-repeated': {
    title: 'The role is sent on every delta',
    explanation: 'The standard sends it once, in the first. Clients that join texts get "assistantassistant".',
    remedy: 'It is read once.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/finish-with-content': {
    title: 'The finish_reason shares its chunk with content',
    explanation:
      'The standard ends with a chunk whose delta is empty. Clients that stop at the reason before they read the delta lose the end.',
    remedy: 'The delta is read first, then the reason.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-with-choices': {
    title: 'The usage shares its chunk with choices',
    explanation:
      'The standard sends the usage by itself, in a chunk with empty choices after the last one. Clients that look only there count nothing.',
    remedy: 'The usage is read wherever it is.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-repeated': {
    title: 'The usage is sent more than once',
    explanation: 'Several chunks carry a usage, mostly one that grows. Clients that add them up count several times too much.',
    remedy: 'The last value of each field counts; nothing is added up.',
    severity: 'info',
    providers: ['compatible servers'],
  },
  'chat/usage-elsewhere': {
    title: 'The usage stands only in a field of the vendor',
    explanation: 'The counts are in x_groq.usage, and there is no usage beside it. Clients count nothing.',
    remedy: 'It is read from there, and written as usage.',
    severity: 'info',
    providers: ['groq'],
  },
  'chat/envelope-incomplete': {
    title: 'A chunk lacks fields that every chunk has',
    explanation:
      'object, created or model is missing, blank or of another type. openai-node does not mind; clients that check types refuse the chunk.',
    remedy: 'Chunks are written with all of them.',
    severity: 'warning',
    providers: ['azure', 'github-copilot', 'compatible servers'],
  },
  'chat/choice-index-missing': {
    title: 'A choice has no index',
    explanation: 'The standard numbers the choices, also when there is only one. The openai SDK throws without the number.',
    remedy: 'A choice without a number is the first; the number is written.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'chat/model-varies': {
    title: 'The model changes within the stream',
    explanation: 'Chunks of one completion name different models.',
    remedy: 'The first name is kept.',
    severity: 'info',
    providers: ['routers'],
  },
  'anthropic/usage-missing': {
    title: 'message_start or message_delta has no usage',
    explanation: 'Both carry one in the standard, and the official SDK throws when it writes to it.',
    remedy: 'The counts are those that came; the events are written with a usage.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-start-incomplete': {
    title: 'The message of message_start is not whole',
    explanation:
      'type, role, model or the empty content list is missing. The official SDK appends blocks to the content, and fails at the first.',
    remedy: 'What is missing is what it always is; the message is written whole.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-missing': {
    title: 'The start of a call has no input',
    explanation: 'The standard begins with an empty object. Clients that check the block refuse it before the arguments come.',
    remedy: 'A call begins without arguments.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-in-start': {
    title: 'The whole input stands in the start of a call',
    explanation:
      'The standard begins a call with an empty object and sends the arguments as deltas. Clients that read only the deltas call the tool without arguments. Calls that the code execution of Anthropic makes come whole by design, and do not count.',
    remedy: 'The input is read from the start, and written as deltas.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'gemini/event-line': {
    title: 'A Gemini frame has an event line',
    explanation:
      'Gemini frames are data alone. The official SDK, Gemini CLI and LangChain drop or refuse a frame that begins with another field.',
    remedy: 'The line is passed over.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/comment': {
    title: 'A comment in a Gemini stream',
    explanation: 'Comments are allowed in SSE, but Gemini sends none, and Gemini CLI and LangChain fail on them.',
    remedy: 'Comments are passed over, and none is written.',
    severity: 'error',
    providers: ['proxies'],
  },
} as const;

HABIT_RULES satisfies Record<`${string}/${string}`, Rule>;
