import type { ProtocolId } from '../../canonical/protocol.ts';
import type { ToolMode } from '../../canonical/request.ts';

/** Copilot CLI sends Gemini's mode VALIDATED under this name. */
const VALIDATED = 'validated';

/** A choice without a canonical form. It goes back to its own protocol as it came; others leave the choice to the model. */
export const unknownChoice = (value: unknown, origin: ProtocolId): ToolMode => ({
  type: 'auto',
  ...(value === VALIDATED && { validated: true }),
  native: { value, origin },
});
