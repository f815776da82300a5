import type { ProtocolId } from '@sluice/core';
import { mutationNamed, SHORT_NAMES } from '../mutate/by-name.ts';
import { FaultError, type Faults, parseFaults, splitModel } from '../tape/faults.ts';

/** What clients find in a list of models; the demo answers to any other name as well, and to the id of every dialect: `demo/chat/usage-twice`. */
export const DEMO_MODELS: readonly string[] = ['hello', ...SHORT_NAMES.keys()];

/** The language in which the demo is asked: the client's own, unless the name is that of a dialect of another. */
export function languageOf(model: string, client: ProtocolId): ProtocolId {
  const { protocols = [client] } = mutationNamed(splitModel(model).model) ?? {};
  return protocols.includes(client) ? client : (protocols[0] ?? client);
}

/** Faults that need more than the stream. */
const ELSEWHERE = ['status', 'page', 'delay', 'times'] as const satisfies readonly (keyof Faults)[];

/** The model's name says what it does wrong: it is that of a dialect, or ends in faults (`hello!cut=300`). */
export function faultsOf(name: string): Faults {
  const { model, fault = '' } = splitModel(name);
  const faults = parseFaults(fault);
  const wrong = ELSEWHERE.find((one) => faults[one] !== undefined);
  if (wrong) throw new FaultError(`the demo does not do "${wrong}": "sluice replay" does`);
  const dialect = mutationNamed(model);
  return dialect ? { ...faults, mutations: [dialect, ...faults.mutations] } : faults;
}
