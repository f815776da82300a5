import type { RequestParameters } from '../canonical/request.ts';

/** What is so anyway, whoever is asked: nothing is lost when it is not said. */
const USUAL: RequestParameters = {
  temperature: 1,
  top_p: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  n: 1,
  logprobs: false,
  top_logprobs: 0,
};

export const isUsual = (name: keyof RequestParameters, value: unknown): boolean => USUAL[name] === value;
