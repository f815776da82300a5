import type { ContentBlock, FileBlock, ImageBlock, TextBlock, ToolResultBlock } from '../canonical/message.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type {
  CanonicalMessage,
  CanonicalRequest,
  CanonicalTool,
  Effort,
  RequestParameters,
  SystemBlock,
  ToolChoice,
} from '../canonical/request.ts';
import { changeAll, inPlaceOf } from './content.ts';
import type { Bounds, Rules, Telling, ToolField, Vocabulary } from './rules.ts';

type ClampRules = Pick<Rules, 'note' | 'refuse' | 'bounds' | 'maxStop' | 'maxTools'>;

/** Numbers into their bounds, and stop sequences to their number. Tools are never cut. */
export function clamp(request: CanonicalRequest, rules: ClampRules): CanonicalRequest {
  const numbers = clampNumbers(request.parameters, rules);
  const stop = clampStop(request.parameters, rules);
  checkTools(request, rules);
  if (!numbers && !stop) return request;
  return { ...request, parameters: { ...request.parameters, ...numbers, ...stop } };
}

const ANYTHING = [-Infinity, Infinity] as const;

function clampNumbers(parameters: RequestParameters, rules: ClampRules): Record<string, number> | undefined {
  let clamped: Record<string, number> | undefined;
  for (const key in rules.bounds) {
    const name = key as keyof Bounds; // a loop knows keys as texts only
    const value = parameters[name];
    const [least, most] = rules.bounds[name] ?? ANYTHING;
    if (typeof value !== 'number' || (value >= least && value <= most)) continue;
    const nearest = value < least ? least : most;
    clamped = { ...clamped, [name]: nearest };
    tell(name, `${name} ${value} is outside ${least} to ${most}; ${nearest} is sent`, rules);
  }
  return clamped;
}

function clampStop(
  { stop_sequences: stop }: RequestParameters,
  rules: ClampRules,
): Pick<RequestParameters, 'stop_sequences'> | undefined {
  if (!stop || stop.length <= rules.maxStop) return undefined;
  tell('stop_sequences', `only ${rules.maxStop} of ${stop.length} stop sequences are sent`, rules);
  return { stop_sequences: stop.slice(0, rules.maxStop) };
}

const tell = (name: string, message: string, rules: ClampRules): void =>
  rules.note({ code: 'CLAMPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });

/** Leaving out some would change what the model can do, without a word to the client. */
function checkTools({ tools = [] }: CanonicalRequest, rules: ClampRules): void {
  if (tools.length <= rules.maxTools) return;
  const message = `the provider accepts at most ${rules.maxTools} tools; the request has ${tools.length}`;
  rules.refuse({ path: '/tools', feature: 'tools', message });
}

interface SayingRules extends Telling {
  protocol: ProtocolId;
  says: Vocabulary;
}

/** What the target has no word for: told, and gone before its encoder looks. */
export function dropUnsaid(request: CanonicalRequest, rules: SayingRules): CanonicalRequest {
  const { tools, system, tool_choice: choice } = request;
  return {
    ...request,
    ...(choice && { tool_choice: dropWord(choice, rules) }),
    ...(tools && {
      tools: changeAll(tools, (tool, i) => dropCallers(dropFields(tool, `/tools/${i}`, rules), `/tools/${i}`, rules)),
    }),
    ...(system && { system: changeAll(system, (block, i) => dropCitations(block, `/system/${i}`, rules)) }),
    messages: changeAll(request.messages, (message, i) => dropInMessage(message, `/messages/${i}`, rules)),
  };
}

/** A choice in the words of another protocol is left to the model, unless it is the target's own mode under another name. */
function dropWord(choice: ToolChoice, rules: SayingRules): ToolChoice {
  if (choice.type === 'tool') return choice;
  const { native, validated, ...mode } = choice;
  if (native?.origin === rules.protocol || (!native && !validated)) return choice;
  if (validated && rules.says.validated) return { ...mode, validated };
  const word = native ? wordOf(native.value) : 'validated';
  const message = `tool choice "${word}" is not supported by the target; sent as "${choice.type}"`;
  rules.note({ code: 'APPROXIMATED', path: '/tool_choice', feature: 'tool_choice.mode', message });
  return mode;
}

const wordOf = (value: unknown): string =>
  typeof value === 'object' && value !== null && 'type' in value ? String(value.type) : String(value);

function dropCallers(tool: CanonicalTool, path: string, rules: SayingRules): CanonicalTool {
  const { allowed_callers: callers, ...rest } = tool;
  const lost = callers?.filter((caller) => rules.says.foreignCallers.test(caller)) ?? [];
  if (!callers || lost.length === 0) return tool;
  const message = `allowed callers ${lost.join(', ')} are not supported by the target; dropped`;
  rules.drop({ path: `${path}/allowed_callers`, feature: 'tools.allowed_callers', message });
  const left = callers.filter((caller) => !lost.includes(caller));
  return left.length > 0 ? { ...rest, allowed_callers: left } : rest;
}

const TOOL_FIELDS: readonly ToolField[] = [
  'strict',
  'defer_loading',
  'allowed_callers',
  'output_schema',
  'input_examples',
  'eager_input_streaming',
];

/** To say that something is not so says nothing where it cannot be. */
function dropFields(tool: CanonicalTool, path: string, rules: SayingRules): CanonicalTool {
  const unknown = TOOL_FIELDS.filter((field) => tool[field] !== undefined && !rules.says.tools.includes(field));
  if (unknown.length === 0) return tool;
  const rest = { ...tool };
  for (const field of unknown) {
    if (tool[field] !== false)
      rules.drop({ path: `${path}/${field}`, feature: `tools.${field}`, message: `there is no ${field} of tools` });
    delete rest[field];
  }
  return rest;
}

function dropInMessage(message: CanonicalMessage, path: string, rules: SayingRules): CanonicalMessage {
  const content = dropInBlocks(message.content, `${path}/content`, false, rules);
  const spoken = content === message.content ? message : { ...message, content };
  if (message.name === undefined || rules.says.names) return spoken;
  rules.drop({ path: `${path}/name`, feature: 'messages.name', message: 'participants have no names' });
  const { name: _, ...nameless } = spoken;
  return nameless;
}

function dropInBlocks<T extends ContentBlock>(
  blocks: T[],
  path: string,
  isResult: boolean,
  rules: SayingRules,
): (T | TextBlock)[] {
  const changed = blocks.flatMap((block, i) => dropInBlock(block, `${path}/${i}`, isResult, rules) as (T | TextBlock)[]); // of the same type
  return changed.length === blocks.length && changed.every((block, i) => block === blocks[i]) ? blocks : changed;
}

function dropInBlock(block: ContentBlock, path: string, isResult: boolean, rules: SayingRules): ContentBlock[] {
  switch (block.type) {
    case 'text':
      return [dropLogprobs(dropCitations(block, path, rules), path, rules)];
    case 'image':
      return [dropDetail(block, path, isResult, rules)];
    case 'file':
      return dropInFile(block, path, rules);
    case 'tool_result':
      return [dropInResult(block, path, rules)];
    case 'audio':
    case 'tool_use':
    case 'thinking':
    case 'opaque':
      return [block];
    default:
      return block satisfies never;
  }
}

function dropLogprobs(block: TextBlock, path: string, rules: SayingRules): TextBlock {
  const { logprobs, ...rest } = block;
  if (!logprobs || rules.says.logprobs) return block;
  const message = 'how likely the words of an earlier answer were is not sent';
  rules.drop({ path: `${path}/logprobs`, feature: 'messages.logprobs', message });
  return rest;
}

/** What a citation points at is known only to who made it. */
function dropCitations<T extends TextBlock | SystemBlock>(block: T, path: string, rules: SayingRules): T {
  const { citations, ...rest } = block as T & Pick<TextBlock, 'citations'>; // instructions may have some, too
  const own = citations?.filter(({ origin }) => origin === rules.protocol) ?? [];
  if (!citations || own.length === citations.length) return block;
  const message = 'citations of another provider are not sent';
  rules.drop({ path: `${path}/citations`, feature: 'messages.citations', message });
  return { ...rest, ...(own.length > 0 && { citations: own }) } as T; // they are optional
}

function dropDetail(block: ImageBlock, path: string, isResult: boolean, rules: SayingRules): ImageBlock {
  const { detail, ...source } = block.source;
  const { detail: where } = rules.says;
  if (detail === undefined || where === 'everywhere' || (where === 'messages' && !isResult)) return block;
  // A word of the target's own goes back as it came.
  if (block.extensions?.[rules.protocol]) return block;
  if (detail !== 'auto') {
    const message = `how closely an image is looked at cannot be said; "${detail}" was asked for`;
    rules.drop({ path: `${path}/source/detail`, feature: 'image.detail', message });
  }
  return { ...block, source };
}

/** What a document is called and about stands in front of it, where it has no place in it. */
function dropInFile(block: FileBlock, path: string, rules: SayingRules): (FileBlock | TextBlock)[] {
  const named = nameFile(block, rules);
  const { title, context, citations_enabled: citable, ...rest } = named;
  const { says } = rules;
  const isTold = { title: title !== undefined && says.titles !== 'field', context: context !== undefined && !says.contexts };
  const isUncited = citable !== undefined && !says.citable;
  const source = dropStretch(named.source, path, rules);
  if (!isTold.title && !isTold.context && !isUncited && source === block.source) return [block];
  if (isUncited && citable)
    rules.drop({ path: `${path}/citations_enabled`, feature: 'file.citations', message: 'documents are not cited' });
  for (const field of ['title', 'context'] as const) if (isTold[field]) tellInFront(path, field, rules);
  const told = [...(isTold.title ? [title] : []), ...(isTold.context ? [context] : [])].filter((line) => line !== '').join('\n');
  return [
    ...(told === '' ? [] : [inPlaceOf<TextBlock>(block, { type: 'text', text: told })]),
    {
      ...rest,
      source,
      ...(!isTold.title && title !== undefined && { title }),
      ...(!isTold.context && context !== undefined && { context }),
      ...(!isUncited && citable !== undefined && { citations_enabled: citable }),
    },
  ];
}

/** The title of a file without a name is its name. */
function nameFile(block: FileBlock, { says }: SayingRules): FileBlock {
  const { title, ...rest } = block;
  const { filename, file_data: data } = block.source;
  if (says.titles !== 'filename' || !title || (filename !== undefined && filename !== title)) return block;
  if (filename === undefined && data === undefined) return block;
  return { ...rest, source: { ...block.source, filename: title } };
}

function dropStretch(source: FileBlock['source'], path: string, rules: SayingRules): FileBlock['source'] {
  const { video, ...film } = source;
  if (video === undefined || rules.says.stretches) return source;
  rules.drop({ path: `${path}/source/video`, feature: 'file.video', message: 'a film is looked at as a whole' });
  return film;
}

const tellInFront = (path: string, field: string, rules: SayingRules): void =>
  rules.note({
    code: 'APPROXIMATED',
    path: `${path}/${field}`,
    feature: `file.${field}`,
    message: `the ${field} of a document is told in a text in front of it`,
  });

function dropInResult(block: ToolResultBlock, path: string, rules: SayingRules): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = dropInBlocks(block.content, `${path}/content`, true, rules);
  return content === block.content ? block : { ...block, content };
}

/** From least to most. */
export const EFFORTS: readonly Effort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

export const isEffort = (word: unknown): word is Effort => EFFORTS.some((effort) => effort === word);

/** The largest budget that counts as this effort ("Effort and budgets" in docs/canonical.md). */
const MOST: readonly (readonly [number, Effort])[] = [
  [512, 'minimal'],
  [1024, 'low'],
  [8192, 'medium'],
  [24576, 'high'],
  [32768, 'xhigh'],
];

/** The effort of a budget in tokens; undefined for none, and for -1, which leaves it to the model. */
export function effortOf(budget: number | undefined): Effort | undefined {
  if (budget === undefined || budget < 0) return undefined;
  return MOST.find(([most]) => budget <= most)?.[1] ?? 'max';
}

const BUDGETS = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24576,
  xhigh: 32768,
  // "Model maximum": whoever knows the model's bounds the budget by it.
  max: 65536,
} satisfies Record<Effort, number>;

/** The tokens that stand for an effort; targets bound them by what the model takes. */
export const budgetOf = (effort: Effort): number => BUDGETS[effort];

/** The allowed effort next to the wanted one; of two, the lesser. */
export function nearestEffort(wanted: Effort, allowed: readonly string[]): Effort | undefined {
  const distance = (effort: Effort): number => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(wanted));
  return EFFORTS.filter((effort) => allowed.includes(effort)).toSorted((a, b) => distance(a) - distance(b))[0];
}

/** What is so anyway, whoever is asked: nothing is lost when it is not said. */
const USUAL: RequestParameters = {
  temperature: 1,
  top_p: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  n: 1,
  logprobs: false,
  top_logprobs: 0,
};

export const isUsual = (name: keyof RequestParameters, value: unknown): boolean => USUAL[name] === value;
