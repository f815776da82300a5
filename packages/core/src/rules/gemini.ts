import type { Rule } from './rule.ts';

/** Departures from the Gemini protocol. */
export const GEMINI_RULES = {
  'gemini/response-wrapper': {
    title: 'Every response stands inside {"response": …}',
    explanation:
      'Cloud Code wraps each GenerateContentResponse into an object with a trace id. A client that looks for candidates at the top finds none and shows an empty answer.',
    remedy: 'Sluice reads the inner object and keeps the fields of the outer one.',
    severity: 'error',
    providers: ['Gemini Cloud Code', 'Antigravity'],
  },
  'gemini/snake-case': {
    title: 'Keys are spelled with underscores',
    explanation:
      'proto3 JSON may be written as finish_reason or finishReason; Google writes the latter and its SDKs read only that.',
    remedy: 'Sluice reads both.',
    severity: 'error',
    providers: ['proxies that print protobuf messages'],
  },
  'gemini/done-sentinel': {
    title: '[DONE] in a Gemini stream',
    explanation:
      'The sentinel belongs to OpenAI Chat; a Gemini stream ends with its body. The JavaScript and Java SDKs fail to parse it.',
    remedy: 'Sluice passes over it.',
    severity: 'error',
    providers: ['OpenAI-compatible proxies'],
  },
  'gemini/unknown-payload': {
    title: 'A payload is no GenerateContentResponse',
    explanation:
      'It has neither candidates nor promptFeedback nor a model or response id: the answer of another endpoint, or of another protocol.',
    remedy: 'Sluice leaves it out.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/malformed-part': {
    title: 'A candidate or part is no object',
    explanation: 'parts is not a list, or one of its elements, or a candidate, is not a JSON object.',
    remedy: 'Sluice leaves the element out.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/unknown-part': {
    title: 'A part of a kind that nobody documents',
    explanation: 'The part has none of the known contents.',
    remedy: 'Sluice keeps it as it is in an opaque block, for Gemini alone.',
    severity: 'info',
    providers: [],
  },
  'gemini/parts-after-finish': {
    title: 'Parts follow a finishReason',
    explanation:
      'Older models write STOP into every chunk, and a turn in which Google runs tools itself has one after each round. Clients that stop at the first lose the rest.',
    remedy: 'Sluice reads to the end of the body; the last reason counts.',
    severity: 'info',
    providers: ['Gemini 1.5', 'Gemini with mcpServers'],
  },
  'gemini/finish-missing': {
    title: 'The stream ends without a finishReason',
    explanation: 'No candidate, or not every one, came to its end, and the prompt was not blocked: the connection was cut.',
    remedy: 'Sluice hands out what was read and calls the message incomplete; it invents no reason.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'gemini/finish-reason-number': {
    title: 'finishReason is a number',
    explanation:
      'The number of the protobuf enum replaces its name. Google sends both spellings; clients that compare names take a filtered answer for a whole one.',
    remedy: 'Sluice reads it by the numbering of Vertex AI.',
    severity: 'info',
    providers: ['Vertex AI through protobuf clients'],
  },
  'gemini/unknown-finish-reason': {
    title: 'A finishReason that nobody documents',
    explanation: 'The word is none of the reasons that Google lists.',
    remedy:
      'Sluice takes it as the end of the turn, or of a turn with calls when there are some, and keeps the word in stop_details.',
    severity: 'info',
    providers: [],
  },
  'gemini/duplicate-call-id': {
    title: 'Two calls share one id',
    explanation: 'A second functionCall repeats the id of an earlier one, so that results could not be told apart.',
    remedy: 'The later call gets a derived id.',
    severity: 'error',
    providers: ['bridges that derive ids from the tool name'],
  },
  'gemini/nameless-call': {
    title: 'A functionCall has no name',
    explanation: 'Nobody could run it.',
    remedy: 'Sluice keeps the part as it is in an opaque block.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/stray-call-end': {
    title: 'An empty functionCall ends no call',
    explanation: 'The marker that ends streamed arguments came although no call was open. Clients see a nameless call.',
    remedy: 'Sluice passes over it.',
    severity: 'error',
    providers: ['Vertex AI (streamFunctionCallArguments)'],
  },
  'gemini/args-not-object': {
    title: 'The args of a functionCall are no object',
    explanation: 'args is text, a list or a number.',
    remedy: 'Text is taken as the arguments verbatim, anything else is written as JSON.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/nested-signature': {
    title: 'thoughtSignature stands inside the functionCall',
    explanation: 'It belongs beside it, on the part; clients that look there lose it, and Gemini 3 refuses the next turn.',
    remedy: 'Sluice reads both places.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/call-not-ended': {
    title: 'Streamed arguments have no end marker',
    explanation: 'Another call, or the end of the turn, came while willContinue still promised more.',
    remedy: 'Sluice takes the arguments as whole when no string was open, else the call stays visibly cut.',
    severity: 'warning',
    providers: ['Vertex AI (streamFunctionCallArguments)'],
  },
  'gemini/bad-json-path': {
    title: 'A piece of streamed arguments names no place',
    explanation:
      'The jsonPath cannot be read, leads through a value that is no object or list, or asks for a list with a huge gap.',
    remedy: 'The arguments are left visibly incomplete, so that nobody runs half of them.',
    severity: 'error',
    providers: [],
  },
  'gemini/late-function-response': {
    title: 'A functionResponse answers no call that is still open',
    explanation:
      'The model content holds the result of a call that Google ran itself, but the call does not stand right before it.',
    remedy:
      'Sluice keeps the result; a call that has already been handed out keeps its kind, and does not count for the stop reason.',
    severity: 'warning',
    providers: ['Gemini with mcpServers'],
  },
} as const;

GEMINI_RULES satisfies Record<`gemini/${string}`, Rule>;
