/**
 * The streams and requests that are converted, in every protocol, as files. A process of its own writes them with Sluice, so that the measured processes
 * have run no other conversion before.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../method/commits.js';
import { chunkJson, sseOpenAI } from '../reference/data.mjs';

const FOLDER = join(ROOT, '.cache/bench/sources');
const PROGRAM = fileURLToPath(import.meta.url);

/** Chunks of the Chat stream that conversions start from. */
export const STREAM_CHUNKS = 3000;
const STREAM_KINDS = ['text', 'tool'];

const nameStream = (kind, protocol) => `stream-${kind}-${protocol}`;
const nameRequest = (size, protocol) => `request-${size}-${protocol}`;

export const readStreamSource = (kind, protocol) => readFileSync(join(FOLDER, nameStream(kind, protocol)));
export const readRequestSource = (size, protocol) => readFileSync(join(FOLDER, nameRequest(size, protocol)), 'utf8');

/** Writes the files anew: the build may have changed. */
export const prepareSources = () => execFileSync(process.execPath, [PROGRAM], { stdio: ['ignore', 'ignore', 'inherit'] });

async function writeSources() {
  const { createStreamConverter } = await import('@sluice/core');
  const { buildRequest, PROTOCOL_IDS, REQUESTS } = await import('../data/requests.js');
  mkdirSync(FOLDER, { recursive: true });
  for (const protocol of PROTOCOL_IDS) {
    for (const kind of STREAM_KINDS) write(nameStream(kind, protocol), buildStream(kind, protocol, createStreamConverter));
    for (const { name } of REQUESTS)
      write(nameRequest(name, protocol), JSON.stringify(buildRequest(name, protocol, { model: 'm' })));
  }
}

function buildStream(kind, protocol, createStreamConverter) {
  const chat = sseOpenAI(chunkJson(kind, STREAM_CHUNKS));
  if (protocol === 'openai-chat') return chat;
  const converter = createStreamConverter({ from: 'openai-chat', to: protocol });
  return Buffer.concat([...converter.push(chat), ...converter.end()]);
}

/** In one step: other processes may read the file. */
function write(name, content) {
  const file = join(FOLDER, name);
  writeFileSync(`${file}.${process.pid}`, content);
  renameSync(`${file}.${process.pid}`, file);
}

if (process.argv[1] === PROGRAM) await writeSources();
