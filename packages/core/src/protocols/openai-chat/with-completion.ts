import { ChatAccumulator } from '../../accumulate/chat.ts';
import type { Protocol } from '../shared/protocol.ts';
import { openaiChat } from './index.ts';

/**
 * OpenAI Chat whose results carry the whole `chat.completion` beside the message: every choice, every unknown field. Not the default: it folds every chunk
 * a second time, and few ask for it.
 *
 * ```ts
 * const { completion } = await accumulate(response.body, { protocol: openaiChatWithCompletion });
 * ```
 */
export const openaiChatWithCompletion: Protocol = {
  ...openaiChat,
  accumulator: () => new ChatAccumulator({ everyField: true }),
};
