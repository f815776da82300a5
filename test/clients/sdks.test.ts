import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ProtocolId } from '../../packages/core/src/index.ts';
import { SHARED } from '../corpus.ts';
import { SDKS, type Sdk } from './asking.ts';
import { modelOf, type Stage, setStage, UPSTREAMS } from './stage.ts';

/** What an upstream may do wrong and the SDKs do not see. docs/clients-tested.md has all of it, with more clients. */
const VARIANTS = [
  'thinking',
  'parallel',
  'notext',
  'crlf',
  'bytes',
  'nousage',
  'stopreason',
  'objargs',
  'noid',
  'noindex',
  'repeatname',
  'noevent',
  'eventline',
  'noblockstop',
  'minimal',
  'emptyoutput',
  'nodone',
  'done',
  'extra',
  'noctype',
  'json',
] as const;

/** Each SDK meets each variant in one other protocol, and so each protocol in many variants. */
function anotherOf({ name, protocol }: Sdk, variant: (typeof VARIANTS)[number]): ProtocolId {
  const others = UPSTREAMS.filter((upstream) => upstream !== protocol);
  const turn = SDKS.findIndex((sdk) => sdk.name === name) + VARIANTS.indexOf(variant);
  return others[turn % others.length] ?? protocol;
}

const NOTE = '/notes/secret.txt';
const WORD = 'MAGIC-0123abcd';

describe('official SDKs through the gateway', { concurrent: true }, () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await setStage(`${SHARED}/clients`, VARIANTS);
  });
  // An answer proves nothing about an upstream that was never asked for it: each must have been asked, and no other one.
  const wanted = new Set<string>();
  afterAll(async () => {
    const asked = await stage.asked();
    await stage.close();
    expect(asked).toEqual(wanted);
  });

  /** The upstream says the word only when the tool was called with the path of the prompt and its result came back. */
  async function ask({ ask }: Sdk, model: string, isStream: boolean): Promise<void> {
    wanted.add(model.slice(0, model.indexOf('/')));
    const paths: string[] = [];
    const read = (path: string): string => {
      paths.push(path);
      return `secret=${WORD}`;
    };
    const prompt = `Please read the file ${NOTE} and then tell me the magic word written in it.`;
    const text = await ask({ url: stage.url, model, isStream, prompt, read });
    expect(text).toContain(`The magic word is ${WORD}. Done ✅🦢`);
    expect(new Set(paths)).toEqual(new Set([NOTE]));
  }

  describe.each(UPSTREAMS)('an upstream with protocol %s', (upstream) => {
    test.each(SDKS)('$name, a stream', (sdk) => ask(sdk, modelOf(upstream), true));
    test.each(SDKS)('$name, a whole response', (sdk) => ask(sdk, modelOf(upstream), false));
  });

  describe.each(VARIANTS)('an upstream that misbehaves: %s', (variant) => {
    test.each(SDKS)('$name, a stream of its own protocol', (sdk) => ask(sdk, modelOf(sdk.protocol, variant), true));
    test.each(SDKS)('$name, a stream of another protocol', (sdk) => ask(sdk, modelOf(anotherOf(sdk, variant), variant), true));
  });

  describe.each(['objargs', 'noid', 'nousage', 'stopreason'] as const)('an invalid whole response: %s', (variant) => {
    test.each(SDKS)('$name', (sdk) => ask(sdk, modelOf(sdk.protocol, variant), false));
  });
});
