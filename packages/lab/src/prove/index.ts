export { buildCase, type Failure } from './failure.ts';
export { type Proven, proveBody, shrink } from './prove-body.ts';
export type { Body } from './splits.ts';
