import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ThinkingConfig } from '../../canonical/request.ts';
import { type CodecContext, drop } from './codec.ts';

/** For a model that does not think: not to think is what it does anyway. */
export function dropThinking({ type }: ThinkingConfig, context: CodecContext): JsonObject {
  if (type !== 'disabled') drop(context, { path: '/thinking', feature: 'thinking', message: 'this model does not think' });
  return {};
}
