import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ThinkingConfig } from '../../canonical/request.ts';
import { type CodecContext, drop } from './codec.ts';

/** Anthropic takes an effort beside disabled thinking: it is about the whole response there. */
export function dropIdleEffort({ type, effort }: ThinkingConfig, context: CodecContext): void {
  if (type === 'disabled' && effort !== undefined)
    drop(context, {
      path: '/thinking/effort',
      feature: 'thinking.effort',
      message: `effort "${effort}" is not supported with disabled thinking; dropped`,
    });
}

/** For a model that does not think: not to think is what it does anyway. */
export function dropThinking({ type }: ThinkingConfig, context: CodecContext): JsonObject {
  if (type !== 'disabled') drop(context, { path: '/thinking', feature: 'thinking', message: 'this model does not think' });
  return {};
}
