/** `@sluice/ai-sdk`: repairs for models of the AI SDK. */

export { createRepairFetch, type Fetch, type RepairFetchOptions, type RepairFinding } from '@sluice/core/fetch';
export type { PartRepair } from './calls.ts';
export { type RepairMiddlewareOptions, repairMiddleware } from './middleware.ts';
