/**
 * Replaces two gateways on one PostgreSQL database under load, one after the other: behind nginx 10 times (`--rounds 2` for fewer), and
 * behind a balancer that requests /health/ready. Exit code 1 when a request fails or a row is wrong. Needs PostgreSQL and nginx.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { proveBalancedRestart, proveRollingRestart } from '../../packages/gateway/test/ledger/node-proofs.js';
import { NginxServer } from '../../packages/gateway/test/real-parts/nginx.js';
import { PostgresServer } from '../../packages/gateway/test/real-parts/postgres.js';
import { findPort } from '../../packages/gateway/test/real-parts/programs.js';

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '10' }, streams: { type: 'string', default: '20' } },
});
const streams = Number(options.streams);
const server = await PostgresServer.start();
const totals = { requests: 0, violations: 0 };
try {
  for (let round = 0; round < Number(options.rounds); round++) report(await inPlace(proveBehindNginx));
  report(await inPlace((place) => proveRollingRestart(place, streams)));
  console.log(`${options.rounds} rounds behind nginx, ${totals.requests} requests, ${totals.violations} violations`);
  process.exitCode = totals.violations === 0 ? 0 : 1;
} finally {
  await server.stop();
}

async function inPlace(prove) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-node-restarts-'));
  try {
    return await prove({ server, url: await server.createDatabase(), folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function proveBehindNginx(place) {
  const started = [];
  const startBalancer = async (ports) => {
    const nginx = await NginxServer.start(ports);
    started.push(nginx);
    return nginx;
  };
  try {
    return await proveBalancedRestart({ ...place, ports: [await findPort(), await findPort()], startBalancer }, streams);
  } finally {
    for (const nginx of started) await nginx.stop();
  }
}

function report({ requests, violations }) {
  totals.requests += requests;
  totals.violations += violations.length;
  for (const violation of violations.slice(0, 20)) console.log(violation);
}
