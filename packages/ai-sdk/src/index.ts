/** `@sluice/ai-sdk`: repairs for models of the AI SDK. */

export type { Fetch, RepairFetchOptions, RepairFinding } from '@sluice/core/fetch';
export type { PartRepair } from './calls.ts';
export { repairedFetch } from './fetch.ts';
export { type RepairMiddlewareOptions, repairMiddleware } from './middleware.ts';
