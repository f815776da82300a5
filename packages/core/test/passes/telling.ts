import type { Note } from '../../src/canonical/notes.ts';
import type { Loss, Rules, TargetRules } from '../../src/passes/rules.ts';

export class Refused extends Error {
  readonly loss: Loss;
  constructor(loss: Loss) {
    super(loss.message);
    this.loss = loss;
  }
}

/** What tests change: requirements of the target and facts of the request. */
export type RuleChanges = Partial<TargetRules & Omit<Rules, 'target' | 'note' | 'repair' | 'refuse'>>;

/** Rules of a target like OpenAI Chat; notes are collected as `CODE feature path`. */
export function testRules(over: RuleChanges = {}): Rules & { told: string[] } {
  const { provider, model, remembersCalls = false, foreignThinking = 'drop', drop, ...target } = over;
  const told: string[] = [];
  const note = ({ code, feature, path }: Note): void => {
    told.push(`${code} ${feature} ${path}`);
  };
  return {
    note,
    drop: drop ?? ((loss) => note({ code: 'DROPPED', ...loss })),
    repair: (loss) => note({ code: 'REPAIRED', ...loss }),
    refuse: (loss) => {
      throw new Refused(loss);
    },
    provider,
    model,
    remembersCalls,
    foreignThinking,
    target: { ...TARGET, ...target },
    told,
  };
}

const TARGET: TargetRules = {
  protocol: 'openai-chat',
  toolName: { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 },
  toolId: { pattern: /^[a-zA-Z0-9_-]+$/, max: 40 },
  custom: false,
  namespaces: false,
  objectRoot: false,
  unsignedThinking: 'keep',
  media: {
    audio: ['wav', 'mp3'],
    imageUrls: true,
    fileUrls: false,
    imageIds: false,
    fileIds: true,
    video: false,
    assistantAudio: 'id',
    inToolResults: false,
  },
  alternate: false,
  emptyMessages: 'keep',
  dropWhitespace: false,
  firstUser: false,
  trailingAssistant: 'keep',
  midSystem: 'keep',
  schemas: { tool: 'openai', strictTool: 'openai-strict', output: 'openai', strictOutput: 'openai' },
  bounds: { max_tokens: [1, 1000], temperature: [0, 2], frequency_penalty: [-2, 2] },
  maxStop: 4,
  maxTools: 128,
  cacheMarks: { places: 'parts', max: 4, ttls: ['30m', '12h'] },
  supports: {
    names: true,
    titles: 'filename',
    contexts: false,
    logprobs: false,
    citable: false,
    clips: false,
    detail: 'everywhere',
    validated: false,
    foreignCallers: /^foreign/,
    tools: ['strict'],
  },
};
