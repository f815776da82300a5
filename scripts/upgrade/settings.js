/** The meaning of a configuration file as data: what a gateway of a checkout makes of it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Variables that the configurations of fixtures refer to. */
export const VARIABLES = { UPGRADE_CLIENT_KEY: 'upgrade-client-key-one', UPGRADE_LOCAL_KEY: 'upgrade-provider-key' };

/** Model names whose targets are compared, for clients of each protocol. */
const MODELS = [
  'one',
  'small',
  'fast',
  'claude-haiku-4',
  'claude-opus-4',
  'qwen3-8b',
  'openai/gpt-5',
  'gpt-5',
  'demo/echo',
  'other',
];

const PROTOCOLS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** Reads a configuration with the code of the checkout in `root`. Secrets are those of the fixture, and are part of the result. */
export async function readSettings(root, file) {
  const load = (name) => import(pathToFileURL(join(root, `packages/gateway/out/config/${name}.js`)));
  const [{ loadConfig }, { resolveConfig }, { SecretRegistry }] = await Promise.all(['load', 'resolve', 'secrets'].map(load));
  const source = loadConfig(file, readFileSync(file, 'utf8'), VARIABLES);
  // Warnings are texts, and name the place of the file.
  const { keys, warnings: _, ...state } = resolveConfig(source, { env: VARIABLES, secrets: new SecretRegistry() });
  const listTargets = (model, protocol) =>
    state.resolveModel(model, protocol)?.map(({ provider, model: name }) => `${provider.id}/${name}`) ?? [];
  return flatten({
    ...toPlain(state),
    // A key was a secret before it had a name and limits.
    keys: keys.map((one) => (one.key ?? one).reveal()),
    targets: Object.fromEntries(
      MODELS.map((model) => [model, Object.fromEntries(PROTOCOLS.map((one) => [one, listTargets(model, one).join(' ')]))]),
    ),
  });
}

function toPlain(value) {
  if (typeof value === 'function') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (typeof value.reveal === 'function') return value.reveal();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Map) return toPlain(Object.fromEntries(value));
  return Array.isArray(value)
    ? value.map(toPlain)
    : Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toPlain(one)]));
}

/** `{ "limits.streams": 500 }`: settings by their paths, without those that are not set. */
function flatten(value, path = '', found = {}) {
  if (typeof value !== 'object' || value === null) {
    if (value !== undefined) found[path] = value;
  } else for (const [name, one] of Object.entries(value)) flatten(one, path === '' ? name : `${path}.${name}`, found);
  return found;
}
