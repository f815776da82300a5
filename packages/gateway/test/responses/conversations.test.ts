import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Started, startGateway } from '../gateway/start.ts';

let gateway: Started;

beforeAll(async () => {
  gateway = await startGateway({ config: { responses: { max_bytes_per_key: '1MiB' } } });
});

afterAll(() => gateway.close());

interface Page {
  id: string;
  data: { id: string; content: { text: string }[] }[];
  last_id: string;
  has_more: boolean;
  error?: { message: string; param: string };
}

async function call(method: string, path: string, body?: object): Promise<Page & { status: number }> {
  const response = await fetch(`${gateway.url}/v1/conversations${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { ...((await response.json()) as Page), status: response.status }; // asserted by the caller
}

const readTexts = ({ data }: Page): (string | undefined)[] => data.map(({ content }) => content[0]?.text);

test('a list continues after an item that was deleted meanwhile, and not after an unknown one', async () => {
  const items = Array.from({ length: 6 }, (_, i) => ({ role: 'user', content: `m${i}` }));
  const { id } = await call('POST', '', { items });
  const read = (query: string): Promise<Page & { status: number }> => call('GET', `/${id}/items?order=asc&limit=2${query}`);
  const first = await read('');
  expect(readTexts(first)).toEqual(['m0', 'm1']);
  await call('DELETE', `/${id}/items/${first.last_id}`);
  const second = await read(`&after=${first.last_id}`);
  expect([readTexts(second), second.has_more]).toEqual([['m2', 'm3'], true]);
  const last = await read(`&after=${second.last_id}`);
  expect([readTexts(last), last.has_more]).toEqual([['m4', 'm5'], false]);
  expect(readTexts(await read(''))).toEqual(['m0', 'm2']);
  for (const after of ['msg_unknown', ''])
    expect(await read(`&after=${after}`)).toMatchObject({ status: 400, error: { param: 'after' } });
  expect((await call('GET', `/${id}/items/${first.last_id}`)).status).toBe(400);
});

test('metadata takes the room of its last value', async () => {
  const other = await call('POST', '', { items: [{ role: 'user', content: 'x' }] });
  const { id } = await call('POST', '', { metadata: { a: '1' } });
  const before = gateway.kept?.bytesOf('') ?? 0;
  for (let i = 0; i < 300; i++) await call('POST', `/${id}`, { metadata: { step: `${i}`, pad: 'é'.repeat(2000) } });
  expect((gateway.kept?.bytesOf('') ?? 0) - before).toBeGreaterThan(4000);
  expect((gateway.kept?.bytesOf('') ?? 0) - before).toBeLessThan(5000);
  await call('POST', `/${id}`, { metadata: { a: '1' } });
  expect(gateway.kept?.bytesOf('')).toBe(before);
  for (const one of [id, other.id]) expect((await call('GET', `/${one}`)).status).toBe(200);
});
