import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Format, importConfig } from '../../src/migrate/import.ts';
import { jsonLines, run, systemError } from '../fake-io.ts';
import { SAMPLES } from './samples.ts';

/** No text of a sample that begins like this may be in a result or a report. */
const CANARY = /canary/;

describe.each(SAMPLES)('$format: $name', ({ format, source, config, notes }) => {
  const text = typeof source === 'string' ? source : JSON.stringify(source);

  test('gives this configuration, which the gateway accepts', async () => {
    const imported = await importConfig(format, text);
    expect(parse(imported.config)).toEqual(config);
    expect(imported.config + JSON.stringify(imported.notes)).not.toMatch(CANARY);
  });

  test('reports what was not carried over', async () => {
    const imported = await importConfig(format, text);
    expect(imported.notes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(notes);
    for (const { message } of imported.notes) expect(message).toMatch(/\w{3}/);
  });
});

const aliases = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
  .split('')
  .map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[i]}`).join()}]`)
  .join('\n')}\nmodel_list: *h`;

const listModels = (count: number): string =>
  `model_list:\n${Array.from({ length: count }, (_, i) => `  - { model_name: m${i}, litellm_params: { model: openai/m${i} } }`).join('\n')}`;

/** A target with three inside of it, to this depth. */
const nest = (depth: number): object =>
  depth === 0
    ? { provider: 'openai', api_key: 'x' }
    : { strategy: { mode: 'loadbalance' }, targets: [nest(depth - 1), nest(depth - 1), nest(depth - 1)] };

test('the name of a variable may have any length', async () => {
  const name = 'A'.repeat(50_000);
  const text = `model_list: [{model_name: a, litellm_params: {model: openai/gpt-5, api_key: os.environ/${name}}}]`;
  expect((await importConfig('litellm', text)).config).toContain(`env:${name}`);
});

describe('files that cannot be imported', () => {
  test.each<[name: string, format: Format, text: string, message: RegExp]>([
    ['an empty file', 'litellm', '', /not a configuration of LiteLLM: it must be a map/],
    ['a list', 'litellm', '- a', /must be a map/],
    ['text', 'portkey', 'pc-config-1234', /must be a map/],
    ['another format', 'litellm', '{"Providers": []}', /has no "model_list"/],
    ['another format', 'portkey', '{"Providers": []}', /not a Portkey config/],
    ['another format', 'claude-code-router', 'model_list: []', /neither "Providers" nor "Router"/],
    ['wrong types', 'litellm', 'model_list: 7', /no provider could be carried over; model_list: must be a list/],
    ['no models', 'litellm', 'model_list: []', /no provider could be carried over/],
    [
      'only unsupported providers',
      'litellm',
      'model_list: [{model_name: a, litellm_params: {model: bedrock/x}}]',
      /"bedrock" is not supported/,
    ],
    [
      'a syntax error beside a key',
      'claude-code-router',
      '{"Providers": [\n{"api_key": "sk-canary" "x"}]}',
      /^line 2: this is not valid JSON/,
    ],
    ['YAML aliases', 'litellm', aliases, /aliases/],
    ['a length without end', 'litellm', 'x'.repeat(5_000_000), /longer than 4 MiB/],
    ['prototypes', 'litellm', '{"__proto__": {"model_list": []}, "constructor": 1}', /has no "model_list"/],
    ['too many models', 'litellm', listModels(5000), /more than 10000 maps/],
    ['too many nested targets', 'portkey', JSON.stringify(nest(8)), /more than 10000 maps/],
    ['nested lists', 'litellm', `model_list: ${'['.repeat(5000)}`, /not valid YAML|no provider/],
  ])('%s for %s', async (_, format, text, message) => {
    const error: unknown = await importConfig(format, text).catch((cause: unknown) => cause);
    expect(String(error)).toMatch(message.source.startsWith('^') ? new RegExp(message.source.slice(1)) : message);
    expect(String(error)).not.toMatch(CANARY);
  });
});

describe('sluice import', () => {
  const source = 'model_list: [{model_name: a, litellm_params: {model: openai/gpt-5, api_key: sk-canary, seed: 1}}]';
  const world = { files: { 'config.yaml': source, 'sluice.yaml': 'log: {}' } };

  test('prints the configuration on stdout and the report on stderr', async () => {
    const { code, stdout, stderr } = await run(['import', 'litellm', 'config.yaml'], world);
    expect(code).toBe(0);
    expect(parse(stdout)).toEqual({ providers: { openai: { api_key: 'env:OPENAI_API_KEY' } }, models: { a: 'openai/gpt-5' } });
    expect(stdout).toContain('# - dropped model_list[0].litellm_params.seed: ');
    expect(stderr).toContain('secret   model_list[0].litellm_params.api_key: is in clear text');
    expect(stderr).toContain('config.yaml: 1 not carried over, 0 changed, 1 keys to set');
    expect(stdout + stderr).not.toMatch(CANARY);
  });

  test('writes a file, and overwrites one only with --force', async () => {
    const kept = await run(['import', 'litellm', 'config.yaml', '--out', 'sluice.yaml'], world);
    expect(kept).toMatchObject({ code: 2, files: {}, stderr: expect.stringContaining('sluice.yaml exists; use --force') });
    const forced = await run(['import', 'litellm', 'config.yaml', '--out', 'sluice.yaml', '--force'], world);
    expect(forced).toMatchObject({ code: 0, stdout: '' });
    expect(parse(forced.files['sluice.yaml'] ?? '')).toHaveProperty('models.a', 'openai/gpt-5');
    const fresh = await run(['import', 'litellm', 'config.yaml', '--out', 'new.yaml'], world);
    expect(Object.keys(fresh.files)).toEqual(['new.yaml']);
  });

  test('prints one object with --json', async () => {
    const outcome = await run(['import', 'litellm', 'config.yaml', '--json'], world);
    expect(jsonLines(outcome)).toEqual([
      {
        format: 'litellm',
        file: 'config.yaml',
        out: null,
        config: expect.stringContaining('openai/gpt-5'),
        notes: [
          { path: 'model_list[0].litellm_params.api_key', kind: 'secret', message: expect.any(String) },
          { path: 'model_list[0].litellm_params.seed', kind: 'dropped', message: expect.any(String) },
        ],
      },
    ]);
    expect(outcome.stderr).toBe('');
  });

  test.each([
    [[], 'name the gateway: litellm, portkey, claude-code-router'],
    [['litelm', 'a'], 'unknown gateway "litelm"; did you mean "litellm"?'],
    [['litellm'], 'name the configuration of LiteLLM to import'],
    [['litellm', 'config.yaml', 'b'], 'only one file can be imported; "b" is the second'],
    [['litellm', 'gone'], 'gone: no such file'],
    [['portkey', 'config.yaml'], 'config.yaml: this is not a Portkey config'],
  ])('%j is rejected', async (words, message) => {
    expect(await run(['import', ...words], world)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(message),
    });
  });

  test('a file that cannot be written is an error', async () => {
    const failing = { ...world, createErrors: { x: systemError('EACCES') } };
    const outcome = await run(['import', 'litellm', 'config.yaml', '--out', 'x'], failing);
    expect(outcome.code).not.toBe(0);
    expect(outcome.stderr).toMatch(/permission denied|EACCES/);
  });
});
