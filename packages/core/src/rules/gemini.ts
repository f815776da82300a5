import type { RuleFacts, RuleText } from './rule.ts';

/** Violations of the Gemini protocol. */
export const GEMINI_TEXTS = {
  'gemini/response-wrapper': {
    title: 'Every response is wrapped in {"response": …}',
    remedy: 'Sluice reads the inner object and keeps the fields of the outer object.',
  },
  'gemini/snake-case': {
    title: 'Keys are spelled with underscores',
    remedy: 'Sluice reads both.',
  },
  'gemini/done-sentinel': {
    title: '[DONE] in a Gemini stream',
    remedy: 'Sluice ignores it.',
  },
  'gemini/unknown-payload': {
    title: 'A payload is not a GenerateContentResponse',
    remedy: 'Sluice skips the payload.',
  },
  'gemini/malformed-part': {
    title: 'A candidate or part is not an object',
    remedy: 'Sluice skips the element.',
  },
  'gemini/unknown-part': {
    title: 'A part of an undocumented kind',
    remedy: 'Sluice keeps it unchanged in an opaque block, which only Gemini clients receive.',
  },
  'gemini/parts-after-finish': {
    title: 'Parts follow a finishReason',
    remedy: 'Sluice reads to the end of the body and uses the last reason.',
  },
  'gemini/finish-missing': {
    title: 'The stream ends without a finishReason',
    remedy: 'Sluice returns what was read and marks the message as incomplete; it never invents a reason.',
  },
  'gemini/finish-reason-number': {
    title: 'finishReason is a number',
    remedy: 'Sluice maps the number as Vertex AI does.',
  },
  'gemini/unknown-finish-reason': {
    title: 'An undocumented finishReason',
    remedy:
      'Sluice reads words such as SAFETY in it. Else it is a normal end, or without content a failure. The value stays in stop_details.',
  },
  'gemini/duplicate-call-id': {
    title: 'Two calls share one id',
    remedy: 'The later call gets a derived id.',
  },
  'gemini/nameless-call': {
    title: 'A functionCall has no name',
    remedy: 'Sluice keeps the part unchanged in an opaque block.',
  },
  'gemini/stray-call-end': {
    title: 'An empty functionCall without a call to end',
    remedy: 'Sluice ignores it.',
  },
  'gemini/args-not-object': {
    title: 'The args of a functionCall are not an object',
    remedy: 'Sluice uses a string verbatim as the arguments and writes anything else as JSON.',
  },
  'gemini/nested-signature': {
    title: 'thoughtSignature is inside the functionCall',
    remedy: 'Sluice reads both places.',
  },
  'gemini/call-not-ended': {
    title: 'Streamed arguments have no end marker',
    remedy: 'Sluice treats the arguments as complete when no string was open; otherwise it marks the call as incomplete.',
  },
  'gemini/bad-json-path': {
    title: 'A piece of streamed arguments has an invalid jsonPath',
    remedy: 'Sluice marks the arguments as incomplete, so that clients do not run the call.',
  },
  'gemini/late-function-response': {
    title: 'A functionResponse without an open call',
    remedy: 'Sluice keeps the result, which does not affect the stop reason.',
  },
} as const;

GEMINI_TEXTS satisfies Record<`gemini/${string}`, RuleText>;

/** The facts about these rules, for the doctor and the pages. */
export const GEMINI_FACTS = {
  'gemini/response-wrapper': {
    explanation:
      'Cloud Code wraps each GenerateContentResponse in an object with a trace id. A client that expects candidates at the top level finds none and shows an empty response.',
    severity: 'error',
    providers: ['Gemini Cloud Code', 'Antigravity'],
  },
  'gemini/snake-case': {
    explanation: 'proto3 JSON allows finish_reason and finishReason. Google sends the latter, and its SDKs read only that.',
    severity: 'error',
    providers: ['proxies that print protobuf messages'],
  },
  'gemini/done-sentinel': {
    explanation:
      'The sentinel belongs to OpenAI Chat; a Gemini stream ends with its body. The JavaScript and Java SDKs fail to parse the sentinel.',
    severity: 'error',
    providers: ['OpenAI-compatible proxies'],
  },
  'gemini/unknown-payload': {
    explanation:
      'The payload has no candidates, no promptFeedback, no model and no response id. It belongs to another endpoint or protocol.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/malformed-part': {
    explanation: 'parts is not a list, or one of its elements, or a candidate, is not a JSON object.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/unknown-part': {
    explanation: 'The part has none of the known fields.',
    severity: 'info',
    providers: [],
  },
  'gemini/parts-after-finish': {
    explanation:
      'Older models send STOP in every chunk, and a turn in which Google runs tools has one after each round. Clients that stop at the first one lose the rest.',
    severity: 'info',
    providers: ['Gemini 1.5', 'Gemini with mcpServers'],
  },
  'gemini/finish-missing': {
    explanation: 'At least one candidate has no finishReason, and the prompt was not blocked: the connection dropped.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'gemini/finish-reason-number': {
    explanation:
      'The number of the protobuf enum is sent instead of its name. Google sends both forms; clients that compare names treat a filtered response as complete.',
    severity: 'info',
    providers: ['Vertex AI through protobuf clients'],
  },
  'gemini/unknown-finish-reason': {
    explanation: 'The value is not one that Google documents.',
    severity: 'info',
    providers: [],
  },
  'gemini/duplicate-call-id': {
    explanation: 'A second functionCall repeats the id of an earlier one, so results cannot be matched.',
    severity: 'error',
    providers: ['bridges that derive ids from the tool name'],
  },
  'gemini/nameless-call': {
    explanation: 'A client cannot run it.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/stray-call-end': {
    explanation: 'The marker that ends streamed arguments arrived while no call was open. Clients see a call without a name.',
    severity: 'error',
    providers: ['Vertex AI (streamFunctionCallArguments)'],
  },
  'gemini/args-not-object': {
    explanation: 'args is a string, a list or a number.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/nested-signature': {
    explanation:
      'It belongs on the part, next to the functionCall. Clients that read it there lose it, and Gemini 3 rejects the next turn.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/call-not-ended': {
    explanation: 'Another call or the end of the turn arrived while willContinue was still true.',
    severity: 'warning',
    providers: ['Vertex AI (streamFunctionCallArguments)'],
  },
  'gemini/bad-json-path': {
    explanation:
      'The jsonPath cannot be parsed, passes through a value that is not an object or list, or would create a list with a huge gap.',
    severity: 'error',
    providers: [],
  },
  'gemini/late-function-response': {
    explanation: 'The model content has the result of a call that Google ran, but the call does not directly precede it.',
    severity: 'warning',
    providers: ['Gemini with mcpServers'],
  },
} as const;

GEMINI_FACTS satisfies Record<keyof typeof GEMINI_TEXTS, RuleFacts>;
