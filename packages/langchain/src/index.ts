/** `@sluice/langchain`: repairs for chat models of LangChain. */

export { createRepairFetch, type Fetch, type RepairFetchOptions, type RepairFinding } from '@sluice/core/fetch';
export { ChunkConcat, concatChunks } from './concat.ts';
