import type { ProtocolId } from '@sluice/core';
import { mutationNamed, SHORT_NAMES } from '../mutate/by-name.ts';
import { FaultError, type Faults, parseFaults, splitModel } from '../tape/faults.ts';

/**
 * Models that clients can list. The demo accepts any other name, and the id of every dialect: `demo/chat/usage-twice`.
 */
export const DEMO_MODELS: readonly string[] = ['hello', ...SHORT_NAMES.keys()];

/** The protocol of the demo: the client's own, unless the name is a dialect of another protocol. */
export function languageOf(model: string, client: ProtocolId): ProtocolId {
  const { protocols = [client] } = mutationNamed(splitModel(model).model) ?? {};
  return protocols.includes(client) ? client : (protocols[0] ?? client);
}

/** Faults that affect more than the stream. */
const ELSEWHERE = ['status', 'page', 'delay', 'times'] as const satisfies readonly (keyof Faults)[];

/** Reads the faults from the model name: a dialect, or a suffix (`hello!cut=300`). */
export function faultsOf(name: string): Faults {
  const { model, fault = '' } = splitModel(name);
  const faults = parseFaults(fault);
  const wrong = ELSEWHERE.find((one) => faults[one] !== undefined);
  if (wrong) throw new FaultError(`the demo does not do "${wrong}": "sluice replay" does`);
  const dialect = mutationNamed(model);
  return dialect ? { ...faults, mutations: [dialect, ...faults.mutations] } : faults;
}
