import { describe, expect, test } from 'vitest';
import {
  type AddressedRequest,
  AddressRanges,
  findProxyRangeFault,
  findRangeFault,
  readClientAddress,
} from '../../src/http/client-address.ts';

const PROXIES = new AddressRanges(['10.0.0.0/8', '127.0.0.1', 'fd00::/8', '2001:db8:1::1']);

const requestFrom = (remoteAddress: string | undefined, headers: AddressedRequest['headers'], encrypted?: boolean) => ({
  socket: { remoteAddress, encrypted },
  headers,
});

const chain = (text: string) => ({ 'x-forwarded-for': text });
const forwarded = (text: string) => ({ forwarded: text });

interface Case {
  peer?: string;
  headers: AddressedRequest['headers'];
  address: string;
}

const CASES: Readonly<Record<string, Case>> = {
  'no headers': { headers: {}, address: '10.0.0.1' },
  'one hop': { headers: chain('192.0.2.7'), address: '192.0.2.7' },
  'a hop that the client invented': { headers: chain('203.0.113.9, 192.0.2.7'), address: '192.0.2.7' },
  'trusted hops are skipped': { headers: chain('203.0.113.9, 192.0.2.7, 10.1.2.3, fd00::7'), address: '192.0.2.7' },
  'only trusted hops: the first': { headers: chain('10.9.9.9, 10.1.2.3'), address: '10.9.9.9' },
  'a local address that the client invented': { headers: chain('127.0.0.1, 192.0.2.7'), address: '192.0.2.7' },
  'several headers': { headers: { 'x-forwarded-for': '203.0.113.9,192.0.2.7' }, address: '192.0.2.7' },
  'a port': { headers: chain('192.0.2.7:4711'), address: '192.0.2.7' },
  IPv6: { headers: chain('2001:db8::7'), address: '2001:db8::7' },
  'IPv6 in brackets': { headers: chain('[2001:db8::7]'), address: '2001:db8::7' },
  'IPv6 with a port': { headers: chain('[2001:db8::7]:443'), address: '2001:db8::7' },
  'IPv4 in IPv6': { headers: chain('::ffff:192.0.2.7'), address: '192.0.2.7' },
  'a trusted hop as IPv4 in IPv6': { headers: chain('192.0.2.7, ::ffff:10.0.0.9'), address: '192.0.2.7' },
  'a peer as IPv4 in IPv6': { peer: '::ffff:10.0.0.1', headers: chain('192.0.2.7'), address: '192.0.2.7' },
  'a peer with a zone': { peer: 'fd00::1%eth0', headers: chain('192.0.2.7'), address: '192.0.2.7' },
  'an IPv6 peer': { peer: '2001:db8:1::1', headers: chain('192.0.2.7'), address: '192.0.2.7' },
  'a name': { headers: chain('localhost'), address: 'unknown' },
  'an empty header': { headers: chain(''), address: 'unknown' },
  'an empty last hop': { headers: chain('192.0.2.7, '), address: 'unknown' },
  'a last hop that is not an address': { headers: chain('192.0.2.7, <script>'), address: 'unknown' },
  'garbage behind a valid hop is not read': { headers: chain('<script>, 192.0.2.7'), address: '192.0.2.7' },
  'other spellings of loopback': { headers: chain('0x7f.1'), address: 'unknown' },
  'a decimal address': { headers: chain('2130706433'), address: 'unknown' },
  'octal parts': { headers: chain('0177.0.0.1'), address: 'unknown' },
  'an open bracket': { headers: chain('[2001:db8::7'), address: 'unknown' },
  'a list in quotes': { headers: chain('"192.0.2.7, 10.0.0.2"'), address: 'unknown' },
  Forwarded: { headers: forwarded('for=192.0.2.7;proto=https;by=10.0.0.1'), address: '192.0.2.7' },
  'Forwarded with IPv6': { headers: forwarded('for="[2001:db8::7]:4711"'), address: '2001:db8::7' },
  'Forwarded with spaces and case': { headers: forwarded('by=10.0.0.1 ; For = "192.0.2.7:80"'), address: '192.0.2.7' },
  'Forwarded with several hops': { headers: forwarded('for=203.0.113.9, for=192.0.2.7, for=10.0.0.3'), address: '192.0.2.7' },
  'Forwarded with a comma in quotes': { headers: forwarded('for=192.0.2.7;ext="a, for=10.0.0.2"'), address: '192.0.2.7' },
  'Forwarded: unknown': { headers: forwarded('for=unknown'), address: 'unknown' },
  'Forwarded: a hidden name': { headers: forwarded('for=_hidden'), address: 'unknown' },
  'Forwarded without for': { headers: forwarded('proto=https'), address: 'unknown' },
  'both headers agree': { headers: { ...chain('192.0.2.7'), ...forwarded('for=192.0.2.7') }, address: '192.0.2.7' },
  'both headers disagree': { headers: { ...chain('192.0.2.7'), ...forwarded('for=10.0.0.2') }, address: 'unknown' },
  'a hundred hops that the client invented': { headers: chain(`${'10.0.0.2, '.repeat(99)}192.0.2.7`), address: '192.0.2.7' },
  'a hundred trusted hops': { headers: chain(`192.0.2.7${', 10.0.0.2'.repeat(100)}`), address: 'unknown' },
  'other headers': { headers: { 'x-real-ip': '192.0.2.7', 'x-client-ip': '192.0.2.7', via: '1.1 x' }, address: '10.0.0.1' },
};

describe('readClientAddress', () => {
  test.each(Object.entries(CASES))('%s', (_, { peer = '10.0.0.1', headers, address }) => {
    expect(readClientAddress(requestFrom(peer, headers), PROXIES)).toMatchObject({ address, isProxied: true });
  });

  test.each(Object.entries(CASES))('headers of another peer are ignored: %s', (_, { headers }) => {
    const all = { ...headers, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example' };
    const direct = { address: '198.51.100.1', isProxied: false, scheme: 'http', host: undefined };
    expect(readClientAddress(requestFrom('198.51.100.1', all), PROXIES)).toEqual(direct);
    expect(readClientAddress(requestFrom('198.51.100.1', all), new AddressRanges([]))).toEqual(direct);
  });

  test('a peer without an address is unknown and not a proxy', () => {
    const client = readClientAddress(requestFrom(undefined, chain('192.0.2.7')), PROXIES);
    expect(client).toMatchObject({ address: 'unknown', isProxied: false });
  });

  test('a local peer that is a trusted proxy counts as proxied, also without headers', () =>
    expect(readClientAddress(requestFrom('127.0.0.1', {}), PROXIES)).toMatchObject({ address: '127.0.0.1', isProxied: true }));

  test.each([
    [{}, false, 'http', undefined],
    [{}, true, 'https', undefined],
    [{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'llm.example' }, false, 'https', 'llm.example'],
    [{ 'x-forwarded-proto': 'http' }, true, 'http', undefined],
    [
      { 'x-forwarded-proto': 'evil, HTTPS', 'x-forwarded-host': 'evil.example, llm.example:8443' },
      false,
      'https',
      'llm.example:8443',
    ],
    [{ 'x-forwarded-proto': 'gopher', 'x-forwarded-host': 'a b' }, false, 'http', undefined],
    [{ 'x-forwarded-host': 'user@evil.example' }, false, 'http', undefined],
    [{ 'x-forwarded-host': 'x'.repeat(300) }, false, 'http', undefined],
    [{ forwarded: 'for=192.0.2.7;proto=https;host="llm.example:8443"' }, false, 'https', 'llm.example:8443'],
    [
      { forwarded: 'for=203.0.113.9;proto=http;host=evil.example, for=192.0.2.7;proto=https;host=llm.example' },
      false,
      'https',
      'llm.example',
    ],
  ])('%j: scheme and host', (headers, encrypted, scheme, host) =>
    expect(readClientAddress(requestFrom('10.0.0.1', headers, encrypted), PROXIES)).toMatchObject({ scheme, host }),
  );

  test.each([',', '10.0.0.2,', '"', 'for=10.0.0.2,', ';'])('a megabyte of %j is read', (unit) => {
    const text = unit.repeat(1_000_000 / unit.length);
    for (const headers of [chain(text), forwarded(text), { 'x-forwarded-host': text, 'x-forwarded-proto': text }])
      expect(readClientAddress(requestFrom('10.0.0.1', headers), PROXIES).isProxied).toBe(true);
  });
});

describe('findRangeFault', () => {
  test.each(['10.0.0.0/8', '10.0.0.1', '10.0.0.1/32', 'fd00::/8', '::1', '::1/128', '::ffff:10.0.0.1'])('%s is valid', (range) =>
    expect(findRangeFault(range)).toBeUndefined(),
  );

  test.each([
    '',
    'x',
    'localhost',
    '10.0.0',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/x',
    ' 10.0.0.1',
    'fe80::1%eth0',
  ])('%j is rejected', (range) => expect(findRangeFault(range)).toContain('must be an address or a range'));

  test.each(['0.0.0.0/0', '::/0', '0.0.0.0/00'])('%s is rejected for proxies, because it contains all addresses', (range) => {
    expect(findRangeFault(range)).toBeUndefined();
    expect(findProxyRangeFault(range)).toContain('every client');
  });

  test.each(['10.0.0.0/10', 'fd00::/80', '10.0.0.1', 'x'])('%s is judged alike for proxies', (range) =>
    expect(findProxyRangeFault(range)).toBe(findRangeFault(range)),
  );
});
