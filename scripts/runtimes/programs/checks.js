/**
 * What every runtime has to do: `npm run runtimes` bundles this file with the core and runs it in each. It uses what all of them have, and nothing
 * of node.
 */
import { accumulate, convertRequest, convertStream, createFetchHandler, PROTOCOLS } from '@sluice/core';
import { createRepairFetch } from '@sluice/core/fetch';
import { checkCase } from '../../../test/match.ts';

const ids = Object.keys(PROTOCOLS);

/** Runs all checks on this data: cases, requests and streams by protocol. Resolves with the number of checks by group, the failures, and the output of the conversions for comparison. */
export async function runChecks({ cases, requests, streams }) {
  const outcome = { counts: { cases: 0, conversions: 0, fetch: 0 }, failures: [], outputs: {} };
  const check = async (group, name, work) => {
    outcome.counts[group]++;
    try {
      const problems = await work();
      for (const problem of problems) outcome.failures.push(`${name}: ${problem}`);
    } catch (error) {
      outcome.failures.push(`${name}: ${error}`);
    }
  };
  for (const one of cases) await check('cases', one.id, () => checkOneCase(one));
  for (const from of ids)
    for (const to of ids)
      await check('conversions', `${from} to ${to}`, async () => {
        outcome.outputs[`${from} to ${to}`] = await convertPair({ from, to, requests, streams });
        return [];
      });
  for (const id of ids) {
    await check('fetch', `handler for ${id}`, () => checkHandler(id, requests[id], streams));
    await check('fetch', `repair of ${id}`, () => checkUnchanged(id, streams[id]));
  }
  await check('fetch', 'repair of a broken stream', () => checkRepair(streams['openai-chat']));
  return outcome;
}

/** The names that the cases use for protocols. `sse` cases are framing, with chat payloads. */
const protocolOf = (name) => (name === 'sse' ? 'openai-chat' : name);

const encode = (text) => new TextEncoder().encode(text);

/** A body in pieces of some bytes, as a network delivers it. */
function streamOf(text, size) {
  const bytes = encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

async function checkOneCase({ protocol, raw, expected }) {
  const size = raw.length > 20_000 ? 4096 : 61;
  return checkCase(await accumulate(streamOf(raw, size), { protocol: protocolOf(protocol) }), expected);
}

/** A request and a stream of one protocol in another. */
async function convertPair({ from, to, requests, streams }) {
  const { body } = convertRequest(requests[from], { from, to, model: 'm-1', stream: true });
  const { request } = convertRequest(requests[to], { from: to, to: from, model: 'm-1', stream: true });
  const converted = streamOf(streams[from], 37).pipeThrough(convertStream({ from, to, request }));
  return JSON.stringify(body) + (await new Response(converted).text());
}

/** A client of this protocol asks the handler, whose upstream speaks Chat. */
async function checkHandler(id, body, streams) {
  const provider = { id: 'test', protocol: 'openai-chat', base_url: 'http://upstream.example/v1', api_key: 'key' };
  const handle = createFetchHandler({
    resolve: (model) => ({ provider, model }),
    fetch: async () => new Response(streamOf(streams['openai-chat'], 53), { headers: { 'content-type': 'text/event-stream' } }),
  });
  const headers = { 'content-type': 'application/json' };
  const url = `http://sluice.example${PATHS[id]}`;
  const response = await handle(new Request(url, { method: 'POST', headers, body: JSON.stringify(body) }));
  const message = await accumulate(response, { protocol: id });
  return compareMessage(message);
}

/** A response that conforms passes `createRepairFetch` byte for byte. */
async function checkUnchanged(id, stream) {
  const send = async () => new Response(streamOf(stream, 41), { headers: { 'content-type': 'text/event-stream' } });
  const fetch = createRepairFetch({ fetch: send });
  const response = await fetch(`http://llm.example${PATHS[id]}`, { method: 'POST', body: JSON.stringify({ stream: true }) });
  const text = await response.clone().text();
  return text === stream && text === (await response.text()) ? [] : ['the stream has changed'];
}

/** Two calls with one index and blank ids. */
async function checkRepair(stream) {
  const found = [];
  const broken = stream.replaceAll(/"index":1,"id":"[^"]*"/g, '"index":0,"id":""');
  if (broken === stream) return ['the sample has no second call'];
  const send = async () => new Response(streamOf(broken, 41), { headers: { 'content-type': 'text/event-stream' } });
  const fetch = createRepairFetch({ fetch: send, onFinding: ({ rule }) => found.push(rule) });
  const response = await fetch('http://llm.example/v1/chat/completions', { method: 'POST', body: '{"stream":true}' });
  const text = await response.text();
  const problems = compareMessage(await accumulate(text, { protocol: 'openai-chat' }));
  if (!/"index":1,"id":"[^"]/.test(text)) problems.push('the second call has no index and id of its own');
  return found.length > 0 ? problems : [...problems, 'nothing was reported'];
}

function compareMessage({ text, tool_calls: calls }) {
  const found = JSON.stringify([text, ...calls.map(({ name, arguments: args }) => [name, args])]);
  const expected = JSON.stringify(['Let me look.', ['get_weather', '{"city":"Paris"}'], ['get_time', '{"zone":"CET"}']]);
  return found === expected ? [] : [`${found} is not ${expected}`];
}

const PATHS = {
  'openai-chat': '/v1/chat/completions',
  'anthropic-messages': '/v1/messages',
  'openai-responses': '/v1/responses',
  gemini: '/v1beta/models/m-1:streamGenerateContent?alt=sse',
};
