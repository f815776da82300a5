/** Drops what a target does not support, clamps parameters, and converts between thinking efforts and budgets. */

import type { ContentBlock, FileBlock, ImageBlock, TextBlock, ToolResultBlock } from '../canonical/message.ts';
import type {
  CanonicalMessage,
  CanonicalRequest,
  CanonicalTool,
  Effort,
  RequestParameters,
  SystemBlock,
  ToolChoice,
} from '../canonical/request.ts';
import { changeAll, copySource } from './content.ts';
import type { Bounds, Rules, ToolField } from './rules.ts';

/** Drops fields that the target does not support, with notes, before its encoder runs. */
export function dropUnsupported(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const { tools, system, tool_choice: choice } = request;
  return {
    ...request,
    ...(choice && { tool_choice: convertMode(choice, rules) }),
    ...(tools && {
      tools: changeAll(tools, (tool, i) => dropCallers(dropFields(tool, `/tools/${i}`, rules), `/tools/${i}`, rules)),
    }),
    ...(system && { system: changeAll(system, (block, i) => dropCitations(block, `/system/${i}`, rules)) }),
    messages: changeAll(request.messages, (message, i) => dropInMessage(message, `/messages/${i}`, rules)),
  };
}

/** A mode of another protocol becomes its nearest standard mode, unless the target has the same mode. */
function convertMode(choice: ToolChoice, rules: Rules): ToolChoice {
  if (choice.type === 'tool') return choice;
  const { native, validated, ...mode } = choice;
  if (native?.origin === rules.target.protocol || (!native && !validated)) return choice;
  if (validated && rules.target.supports.validated) return { ...mode, validated };
  const name = native ? readMode(native.value) : 'validated';
  const message = `tool choice "${name}" is not supported by the target; sent as "${choice.type}"`;
  rules.note({ code: 'APPROXIMATED', path: '/tool_choice', feature: 'tool_choice.mode', message });
  return mode;
}

const readMode = (value: unknown): string =>
  typeof value === 'object' && value !== null && 'type' in value ? String(value.type) : String(value);

function dropCallers(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  const { allowed_callers: callers, ...rest } = tool;
  const lost = callers?.filter((caller) => rules.target.supports.foreignCallers.test(caller)) ?? [];
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

/** `false` is the default, so dropping it needs no note. */
function dropFields(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  const unknown = TOOL_FIELDS.filter((field) => tool[field] !== undefined && !rules.target.supports.tools.includes(field));
  if (unknown.length === 0) return tool;
  const rest = { ...tool };
  for (const field of unknown) {
    if (tool[field] !== false)
      rules.drop({
        path: `${path}/${field}`,
        feature: `tools.${field}`,
        message: `tool field "${field}" is not supported by the target; dropped`,
      });
    delete rest[field];
  }
  return rest;
}

function dropInMessage(message: CanonicalMessage, path: string, rules: Rules): CanonicalMessage {
  const content = dropInBlocks(message.content, `${path}/content`, false, rules);
  const cleaned = content === message.content ? message : { ...message, content };
  if (message.name === undefined || rules.target.supports.names) return cleaned;
  rules.drop({
    path: `${path}/name`,
    feature: 'messages.name',
    message: 'message field "name" is not supported by the target; dropped',
  });
  const { name: _, ...nameless } = cleaned;
  return nameless;
}

function dropInBlocks<T extends ContentBlock>(blocks: T[], path: string, isResult: boolean, rules: Rules): (T | TextBlock)[] {
  const changed = blocks.flatMap((block, i) => dropInBlock(block, `${path}/${i}`, isResult, rules) as (T | TextBlock)[]); // a block keeps its type
  return changed.length === blocks.length && changed.every((block, i) => block === blocks[i]) ? blocks : changed;
}

function dropInBlock(block: ContentBlock, path: string, isResult: boolean, rules: Rules): ContentBlock[] {
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

function dropLogprobs(block: TextBlock, path: string, rules: Rules): TextBlock {
  const { logprobs, ...rest } = block;
  if (!logprobs || rules.target.supports.logprobs) return block;
  const message = 'log probabilities of earlier responses are not supported by the target; dropped';
  rules.drop({ path: `${path}/logprobs`, feature: 'messages.logprobs', message });
  return rest;
}

/** Only the provider that made a citation can resolve it. */
function dropCitations<T extends TextBlock | SystemBlock>(block: T, path: string, rules: Rules): T {
  const { citations, ...rest } = block as T & Pick<TextBlock, 'citations'>; // instructions may have citations too
  const own = citations?.filter(({ origin }) => origin === rules.target.protocol) ?? [];
  if (!citations || own.length === citations.length) return block;
  const message = 'citations of another provider are not supported by the target; dropped';
  rules.drop({ path: `${path}/citations`, feature: 'messages.citations', message });
  return { ...rest, ...(own.length > 0 && { citations: own }) } as T; // citations are optional
}

function dropDetail(block: ImageBlock, path: string, isResult: boolean, rules: Rules): ImageBlock {
  const { detail, ...source } = block.source;
  const { detail: where } = rules.target.supports;
  if (detail === undefined || where === 'everywhere' || (where === 'messages' && !isResult)) return block;
  // A resolution in the target's own form is sent unchanged.
  if (block.extensions?.[rules.target.protocol]) return block;
  if (detail !== 'auto') {
    const message = `image detail "${detail}" is not supported by the target; dropped`;
    rules.drop({ path: `${path}/source/detail`, feature: 'image.detail', message });
  }
  return { ...block, source };
}

/** Title and context become a text before the document if the target has no field for them. */
function dropInFile(block: FileBlock, path: string, rules: Rules): (FileBlock | TextBlock)[] {
  const named = nameFile(block, rules);
  const { title, context, citations_enabled: citable, ...rest } = named;
  const { supports } = rules.target;
  const isMoved = {
    title: title !== undefined && supports.titles !== 'field',
    context: context !== undefined && !supports.contexts,
  };
  const isUncited = citable !== undefined && !supports.citable;
  const source = dropClip(named.source, path, rules);
  if (!isMoved.title && !isMoved.context && !isUncited && source === block.source) return [block];
  if (isUncited && citable)
    rules.drop({
      path: `${path}/citations_enabled`,
      feature: 'file.citations',
      message: 'citations of documents are not supported by the target; dropped',
    });
  for (const field of ['title', 'context'] as const) if (isMoved[field]) noteMoved(path, field, rules);
  const text = [...(isMoved.title ? [title] : []), ...(isMoved.context ? [context] : [])]
    .filter((line) => line !== '')
    .join('\n');
  return [
    ...(text === '' ? [] : [copySource<TextBlock>(block, { type: 'text', text })]),
    {
      ...rest,
      source,
      ...(!isMoved.title && title !== undefined && { title }),
      ...(!isMoved.context && context !== undefined && { context }),
      ...(!isUncited && citable !== undefined && { citations_enabled: citable }),
    },
  ];
}

/** If the target supports only file names, the title becomes the name of a file without one. */
function nameFile(block: FileBlock, { target: { supports } }: Rules): FileBlock {
  const { title, ...rest } = block;
  const { filename, file_data: data } = block.source;
  if (supports.titles !== 'filename' || !title || (filename !== undefined && filename !== title)) return block;
  if (filename === undefined && data === undefined) return block;
  return { ...rest, source: { ...block.source, filename: title } };
}

function dropClip(source: FileBlock['source'], path: string, rules: Rules): FileBlock['source'] {
  const { video, ...rest } = source;
  if (video === undefined || rules.target.supports.clips) return source;
  rules.drop({
    path: `${path}/source/video`,
    feature: 'file.video',
    message: 'video clipping and frame rate are not supported by the target; dropped',
  });
  return rest;
}

const noteMoved = (path: string, field: string, rules: Rules): void =>
  rules.note({
    code: 'APPROXIMATED',
    path: `${path}/${field}`,
    feature: `file.${field}`,
    message: `document field "${field}" is not supported by the target; sent as a text before the document`,
  });

function dropInResult(block: ToolResultBlock, path: string, rules: Rules): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = dropInBlocks(block.content, `${path}/content`, true, rules);
  return content === block.content ? block : { ...block, content };
}

/** Clamps numbers to the accepted ranges, and limits stop sequences. Too many tools are rejected. */
export function clampParameters(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const numbers = clampNumbers(request.parameters, rules);
  const stop = clampStop(request.parameters, rules);
  checkTools(request, rules);
  if (!numbers && !stop) return request;
  return { ...request, parameters: { ...request.parameters, ...numbers, ...stop } };
}

const UNBOUNDED = [-Infinity, Infinity] as const;

function clampNumbers(parameters: RequestParameters, rules: Rules): Record<string, number> | undefined {
  let clamped: Record<string, number> | undefined;
  for (const key in rules.target.bounds) {
    const name = key as keyof Bounds; // `for…in` types keys as string
    const value = parameters[name];
    const [least, most] = rules.target.bounds[name] ?? UNBOUNDED;
    if (typeof value !== 'number' || (value >= least && value <= most)) continue;
    const nearest = value < least ? least : most;
    clamped = { ...clamped, [name]: nearest };
    noteClamped(name, `${name} ${value} is outside ${least} to ${most}; ${nearest} is sent`, rules);
  }
  return clamped;
}

function clampStop(
  { stop_sequences: stop }: RequestParameters,
  rules: Rules,
): Pick<RequestParameters, 'stop_sequences'> | undefined {
  if (!stop || stop.length <= rules.target.maxStop) return undefined;
  noteClamped(
    'stop_sequences',
    `the target accepts ${rules.target.maxStop} stop sequences; dropped ${stop.length - rules.target.maxStop} of ${stop.length}`,
    rules,
  );
  return { stop_sequences: stop.slice(0, rules.target.maxStop) };
}

const noteClamped = (name: string, message: string, rules: Rules): void =>
  rules.note({ code: 'CLAMPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });

/** Dropping some tools would silently change what the model can do. */
function checkTools({ tools = [] }: CanonicalRequest, rules: Rules): void {
  if (tools.length <= rules.target.maxTools) return;
  const message = `the provider accepts at most ${rules.target.maxTools} tools; the request has ${tools.length}`;
  rules.refuse({ path: '/tools', feature: 'tools', message });
}

/** The largest budget of each effort ("Effort and budgets" in docs/canonical.md). */
const MAX_BUDGETS: readonly (readonly [number, Effort])[] = [
  [512, 'minimal'],
  [1024, 'low'],
  [8192, 'medium'],
  [24576, 'high'],
  [32768, 'xhigh'],
];

/** The effort of a budget in tokens; undefined for none, and for -1, which leaves it to the model. */
export function findEffort(budget: number | undefined): Effort | undefined {
  if (budget === undefined || budget < 0) return undefined;
  return MAX_BUDGETS.find(([most]) => budget <= most)?.[1] ?? 'max';
}

const BUDGETS = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24576,
  xhigh: 32768,
  // The model's maximum: targets that know it clamp the budget.
  max: 65536,
} satisfies Record<Effort, number>;

/** The budget of an effort; targets clamp it to what the model accepts. */
export const findBudget = (effort: Effort): number => BUDGETS[effort];

/** All efforts, from lowest to highest. */
export const EFFORTS: readonly Effort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The allowed effort nearest to the wanted one; of two, the lower. */
export function nearestEffort(wanted: Effort, allowed: readonly string[]): Effort | undefined {
  const distance = (effort: Effort): number => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(wanted));
  return EFFORTS.filter((effort) => allowed.includes(effort)).toSorted((a, b) => distance(a) - distance(b))[0];
}

/** Whether a value is one of the efforts. */
export const isEffort = (value: unknown): value is Effort => EFFORTS.some((effort) => effort === value);

/** Default values that all providers share; dropping them loses nothing. */
const DEFAULTS: RequestParameters = {
  temperature: 1,
  top_p: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  n: 1,
  logprobs: false,
  top_logprobs: 0,
};

/** Whether a parameter has its default value. */
export const isDefault = (name: keyof RequestParameters, value: unknown): boolean => DEFAULTS[name] === value;
