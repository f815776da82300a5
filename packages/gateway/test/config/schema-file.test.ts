import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DEFAULT_CHAT_PROFILE } from '@sluice/core/openai-chat/codec';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/config/options.ts';
import { schemaFile } from '../../src/config/schema.ts';
import { answering, stateOf } from './world.ts';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../../../${path}`, import.meta.url)), 'utf8');
const schema = JSON.parse(schemaFile());

describe('sluice.schema.json', () => {
  // After a change of the schema: npm run build && node scripts/write-schema.js
  test('matches the schema in the code', () => expect(read('packages/gateway/sluice.schema.json')).toBe(schemaFile()));

  test('contains every limit with its default', () => {
    const { properties } = schema.properties.limits;
    expect(Object.keys(properties)).toEqual(Object.values(LIMITS).map(({ name }) => name));
    for (const { name, preset, about } of Object.values(LIMITS))
      expect(properties[name]).toMatchObject({ default: preset, description: about });
  });

  test('contains every field of a profile', () => {
    const provider = schema.properties.providers.additionalProperties.anyOf.find(
      (shape: { type: string }) => shape.type === 'object',
    );
    expect(Object.keys(provider.properties.profile.properties)).toEqual(
      expect.arrayContaining(Object.keys(DEFAULT_CHAT_PROFILE)),
    );
    expect(provider.additionalProperties).toBe(false);
  });

  test('accepts a reference for a number', () => {
    expect(schema.properties.listen.properties.port.anyOf).toContainEqual({ $ref: '#/$defs/reference' });
    expect(`\${PORT}`).toMatch(new RegExp(schema.$defs.reference.pattern));
  });
});

describe('docs/config.md', () => {
  const docs = read('docs/config.md');

  test.each(Object.values(LIMITS))('documents $name', ({ name, preset, about }) =>
    expect(docs).toContain(`| \`${name}\` | ${preset} | ${about} |`),
  );

  test.each(Object.keys(schema.properties).filter((name) => name !== '$schema'))('documents %s', (name) =>
    expect(docs).toContain(name),
  );
});

describe('examples/sluice.yaml', () => {
  const yaml = read('examples/sluice.yaml');

  test('references the schema for editors', () =>
    expect(yaml.split('\n')[0]).toBe('# yaml-language-server: $schema=../packages/gateway/sluice.schema.json'));

  test('is a valid configuration', () => {
    const state = stateOf({ yaml });
    expect(state.warnings).toEqual([]);
    expect(answering(state, 'claude-haiku-4-5')).toEqual(['local/qwen3-0.6b', 'ollama/qwen3:0.6b', 'demo/echo']);
    expect(answering(state, 'qwen3-coder')).toEqual(['ollama/qwen3-coder']);
  });

  test('is valid with the commented lines enabled', () => {
    const all = yaml.replace(/^# (auth:| {2}keys:)/gm, '$1').replace('# api_key', 'api_key');
    const state = stateOf({ yaml: all, env: { SLUICE_CLIENT_KEY: 'client', LOCAL_KEY: 'local' } });
    expect(state.keys.map(({ key }) => key.reveal())).toEqual(['client']);
    expect(state.providerFor('local')?.key?.reveal()).toBe('local');
  });
});
