import type { CanonicalMessage, CanonicalRequest } from '../../packages/core/src/canonical/request.ts';
import type { ProviderProfile } from '../../packages/core/src/codec/profile.ts';
import type { CodecContext, WireRequest } from '../../packages/core/src/codec/protocol.ts';
import { buildRules } from '../../packages/core/src/codec/requests.ts';
import type { JsonObject } from '../../packages/core/src/json/json.ts';
import { prepare } from '../../packages/core/src/passes/prepare.ts';
import type { TargetRules } from '../../packages/core/src/passes/rules.ts';
import { encodePart } from './blocks.ts';
import { PATH } from './endpoints.ts';
import { toolRules } from './profiles.ts';
import { encodeParameters } from './settings.ts';
import { encodeTools } from './tools.ts';
import { fieldsOf, PROTOCOL } from './wire.ts';

const TURNS = { user: 'user', assistant: 'model', tool: 'tool', system: 'user' } as const;

export function encodeRequest(source: CanonicalRequest, caller: CodecContext): WireRequest {
  const { request, context } = prepare(source, buildRules(buildTarget(caller.profile), caller), caller);
  const { model, system, messages, tools, parameters, stream } = request;
  const body = {
    ...fieldsOf(request),
    toy: 1,
    model: context.target?.model ?? model,
    ...(system && { system: system.map(({ text }) => text).join('\n') }),
    turns: messages.map(encodeTurn),
    ...(tools && { tools: encodeTools(tools) }),
    ...encodeParameters(parameters, context),
    ...(stream && { stream: true }),
  };
  return { method: 'POST', path: PATH, headers: { 'content-type': 'application/json' }, body };
}

const encodeTurn = ({ role, content }: CanonicalMessage): JsonObject => ({
  by: TURNS[role],
  parts: content.flatMap((block) => encodePart(block) ?? []),
});

function buildTarget(profile: ProviderProfile): TargetRules {
  return {
    ...toolRules(profile),
    protocol: PROTOCOL,
    toolId: profile.tool_id,
    unsignedThinking: 'drop',
    media: {
      audio: [],
      imageUrls: false,
      fileUrls: false,
      imageIds: false,
      fileIds: false,
      video: false,
      assistantAudio: 'transcript',
      inToolResults: false,
    },
    alternate: false,
    emptyMessages: 'drop',
    dropWhitespace: false,
    firstUser: false,
    trailingAssistant: 'keep',
    midSystem: 'reminder',
    schemas: { tool: 'openai', strictTool: 'openai', output: 'openai', strictOutput: 'openai' },
    bounds: {},
    maxStop: 0,
    maxTools: profile.max_tools,
    cacheMarks: { places: 'none', max: 0, ttls: [] },
    supports: {
      names: false,
      titles: 'text',
      contexts: false,
      logprobs: false,
      citable: false,
      clips: false,
      detail: 'nowhere',
      validated: false,
      foreignCallers: /./,
      tools: [],
    },
  };
}
