import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { doctorRecord, doctorSchemaFile } from '../../packages/gateway/src/doctor/record-schema.ts';
import { jsonLines, run, systemError } from '../../packages/gateway/test/fake-io.ts';
import { ConnectProxy } from '../../packages/gateway/test/gateway/connect-proxy.ts';
import { chat, chatCall, chatError, cutChat } from '../../packages/gateway/test/streams.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** One violation of each severity. */
const STREAMS = {
  clean: chat('hi'),
  error: chatCall('{}').replaceAll('"index":0,"id"', '"id"'),
  warning: chat('hi').replace('"finish_reason":null', '"finish_reason":""'),
  info: chat('hi').replace('data: [DONE]\n\n', ''),
  cut: cutChat('he'),
  failed: chatError('slow <down> & "wait" \u001b[31m\u0000'),
} as const;

const examine = (argv: string[], files: Record<string, string> = STREAMS) => run(['doctor', ...argv], { files });

describe('--fail-on', () => {
  test.each<[stream: keyof typeof STREAMS, codes: [error: number, warning: number, info: number]]>([
    ['clean', [0, 0, 0]],
    ['error', [1, 1, 1]],
    ['warning', [0, 1, 1]],
    ['info', [0, 0, 1]],
    ['cut', [1, 1, 1]],
    ['failed', [1, 1, 1]],
  ])('exit codes of a stream with severity %s', async (stream, codes) => {
    const [line] = jsonLines(await examine(['--json', stream]));
    const severities = ((line?.['findings'] ?? []) as { severity: string }[]).map(({ severity }) => severity);
    if (stream === 'error' || stream === 'warning' || stream === 'info') expect(severities[0]).toBe(stream);
    for (const [at, severity] of ['error', 'warning', 'info'].entries())
      expect((await examine(['--fail-on', severity, stream])).code, severity).toBe(codes[at]);
    expect((await examine([stream])).code, 'the default').toBe(codes[0]);
  });

  test('rejects other values', async () => {
    const { code, stderr } = await examine(['--fail-on', 'fatal', 'clean']);
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--fail-on must be error, warning, info, not "fatal"'),
    });
  });
});

describe('--junit', () => {
  test('has a test case per input, with the findings that count as failures', async () => {
    const outcome = await examine(['--fail-on', 'warning', '--junit', 'r.xml', '--json', ...Object.keys(STREAMS), 'gone']);
    const xml = outcome.files['r.xml'] ?? '';
    expect(xml).toContain('<testsuite name="sluice doctor files" tests="7" failures="2" errors="3" skipped="0">');
    const cases = [...xml.matchAll(/<testcase name="(\w+)"[^>]*>(?:<(\w+(?:-out)?))?/g)].map(([, name, first]) => [name, first]);
    expect(cases).toEqual([
      ['clean', undefined],
      ['error', 'failure'],
      ['warning', 'failure'],
      ['info', 'system-out'],
      ['cut', 'error'],
      ['failed', 'error'],
      ['gone', 'error'],
    ]);
    expect(xml).toContain('type="chat/tool-index-missing"');
    expect(outcome.code).toBe(2);
  });

  test('escapes text of the server and has no character that XML forbids', async () => {
    const { files } = await examine(['--junit', 'r.xml', 'failed']);
    const xml = files['r.xml'] ?? '';
    expect(xml).toContain('slow &#60;down&#62; &#38; &#34;wait&#34; ');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must be absent
    expect(xml).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/);
  });

  test('a file that cannot be written is reported, and the exit code is 2', async () => {
    const world = { files: STREAMS, createErrors: { 'r.xml': systemError('EACCES') } };
    const { code, stderr } = await run(['doctor', '--junit', 'r.xml', 'clean'], world);
    expect(code).toBe(2);
    expect(stderr).toContain('r.xml: permission denied');
  });
});

describe('a live server', () => {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      if (request.url !== '/v1/chat/completions') return response.writeHead(404).end('{"error":{"message":"no"}}');
      return response.writeHead(200, { 'content-type': 'text/event-stream' }).end(STREAMS.warning);
    });
  });
  let proxy: ConnectProxy;
  let port = 0;

  beforeAll(async () => {
    proxy = await ConnectProxy.start();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
    proxy.routes.set('server.test:80', port);
  });

  afterAll(async () => {
    await proxy.stop();
    await new Promise((resolve) => server.close(resolve));
  });

  const probe = (url: string, argv: string[], env: Record<string, string> = {}) =>
    run(['doctor', '--url', `${url}/v1`, '--model', 'm', '--protocol', 'openai', ...argv], { env });

  test('inconclusive probes are skipped in the report and do not hide a failure', async () => {
    const url = `http://127.0.0.1:${port}`;
    const strict = await probe(url, ['--fail-on', 'warning', '--junit', 'r.xml']);
    expect(strict.code).toBe(1);
    expect(strict.files['r.xml']).toContain('tests="7" failures="7" errors="0" skipped="0"');
    const lenient = await probe(url, ['--junit', 'r.xml']);
    expect(lenient.code).toBe(3);
    expect(lenient.files['r.xml']).toContain('<skipped message="no tool was called"/>');
  });

  test('is reached through the proxy of the environment, and directly where NO_PROXY names it', async () => {
    const env = { HTTP_PROXY: `http://user:canary@127.0.0.1:${proxy.port}` };
    proxy.play('open');
    const outcome = await probe('http://server.test', ['--json'], env);
    expect(jsonLines(outcome).map(({ status }) => status)).toEqual(Array(7).fill(200));
    expect(proxy.heads[0]).toMatch(/^CONNECT server\.test:80 /);
    const direct = await probe('http://server.test', ['--json'], { ...env, NO_PROXY: 'server.test' });
    expect(jsonLines(direct)).toMatchObject([{ outcome: 'failed' }]);
  });

  test('a proxy that refuses is named in the report, without its password', async () => {
    proxy.play({ send: 'HTTP/1.1 403 Forbidden\r\n\r\n' });
    const outcome = await probe('http://server.test', [], { HTTP_PROXY: `http://user:canary@127.0.0.1:${proxy.port}` });
    expect(outcome.stdout).toContain('the proxy refused the connection (403)');
    expect(outcome.stdout + outcome.stderr).not.toContain('canary');
    expect(outcome.code).toBe(1);
  });

  test('lines of files and probes match doctor.schema.json', async () => {
    const lines = [
      ...jsonLines(await examine(['--json', ...Object.keys(STREAMS), 'gone'])),
      ...jsonLines(await probe(`http://127.0.0.1:${port}`, ['--json'])),
      ...jsonLines(await probe('http://127.0.0.1:1', ['--json'])),
    ];
    expect(lines).toHaveLength(15);
    for (const line of lines) expect(doctorRecord.safeParse(line).error?.issues, JSON.stringify(line)).toBeUndefined();
    for (const { version, ...rest } of lines) expect(doctorRecord.safeParse(rest).success, String(version)).toBe(false);
  });
});

test('doctor.schema.json matches the schema in the code', () =>
  expect(read('packages/gateway/doctor.schema.json')).toBe(doctorSchemaFile()));

describe('the workflow example', () => {
  interface Step {
    run?: string;
    uses?: string;
    with?: Record<string, string>;
    'working-directory'?: string;
  }

  const { steps } = (parse(read('examples/ci/doctor.yml')) as { jobs: { doctor: { steps: Step[] } } }).jobs.doctor;
  const script = steps.map(({ run: text = '' }) => text).join('\n');

  test('installs Sluice from its source at a commit that the user chooses, and runs no package of the registry by name', () => {
    const source = steps.find((step) => step.with?.['repository']);
    const manifest = JSON.parse(read('packages/gateway/package.json')) as { repository: { url: string } };
    expect(manifest.repository.url).toContain(`/${source?.with?.['repository']}`);
    expect(read('examples/ci/doctor.yml')).toMatch(/ref: \S+ # change/);
    expect(script).not.toMatch(/\bnpx\b/);
    const install = steps.find(({ run: text = '' }) => text.includes('install-sluice'));
    expect(install?.['working-directory']).toBe(source?.with?.['path']);
    const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts);
    for (const [, name] of (install?.run ?? '').matchAll(/npm run (\S+)/g)) expect(scripts).toContain(name);
    const prefix = /--prefix "(\S+)"/.exec(install?.run ?? '')?.[1];
    expect(install?.run).toContain(`echo "${prefix}/bin" >> "$GITHUB_PATH"`);
  });

  test('uses options that exist', async () => {
    const line = /^ *sluice (doctor .*?) >/ms.exec(script.replaceAll('\\\n', ''))?.[1] ?? '';
    const argv = line
      .trim()
      .split(/\s+/)
      .map((word) => (word.includes('8000') ? 'http://127.0.0.1:1/v1' : word));
    const { code, stderr } = await run(argv, { env: { SERVER_KEY: 'k' } });
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.not.stringContaining('--help') });
  });
});
