/**
 * `@sluice/core/internal`: what the gateway, the lab and the tests need beyond the public API. Not covered by semantic
 * versioning: any release may change or remove it.
 */

export { isClientCall, recomputeStop } from './canonical/message.ts';
export { ownError } from './canonical/notes.ts';
export { StreamRuleError, StreamValidator } from './canonical/validator.ts';
export { buildTooDeepError } from './codec/answers.ts';
export { parseDeployment } from './codec/deployment.ts';
export { GrammarError, type StreamGrammar } from './codec/grammar.ts';
export { normalizeField } from './codec/output-limit.ts';
export { BoundedCache, type CacheLimits } from './codec/profile.ts';
export { findBreakage } from './doctor/breakage.ts';
export { computeScore, learnProfile } from './doctor/examiner.ts';
export { encodeResponse, encodeResponseStream } from './engine/whole.ts';
export { findJsonFault } from './json/fault.ts';
export { findJsonStrings, type Span, withFields } from './json/fields.ts';
export { isDeeperThan, isDeepText, parseJson } from './json/json.ts';
export { MAX_JSON_DEPTH } from './json/limits.ts';
export { listInexactNumbers } from './json/literals.ts';
export { endOfString, JsonScanner } from './json/scanner.ts';
export { GRAMMARS } from './protocols/index.ts';
export { decodeUsage as decodeChatUsage } from './protocols/openai-chat/outcome.ts';
export { repairInPlace } from './repair/in-place.ts';
