/**
 * Two gateway processes on one PostgreSQL database, under load: one of them is killed, the database is restarted, both are replaced one
 * after the other. What the clients saw must agree with the ledger, as with one gateway. Plain JavaScript on the build.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask, askUntilKilled, buildConfig, inspect, sleep, startGateway, startUpstream, waitForEnds } from './kill-gateway.js';

/** Runs `work` with an upstream and a function that starts nodes, and compares at the end. */
async function withNodes({ server, url, folder, settings = [] }, work) {
  const upstream = await startUpstream();
  const config = join(folder, 'sluice.yaml');
  const lines = [`store: "${url}"`, `auth: { pepper_file: "${join(folder, 'pepper')}" }`, ...settings];
  writeFileSync(config, `${buildConfig(upstream.address().port)}${lines.join('\n')}\n`);
  const running = new Set();
  const start = async (...options) => {
    const gateway = await startGateway(config, ...options);
    running.add(gateway);
    return gateway;
  };
  const context = { start, seen: [], next: { number: 0 } };
  const read = (text) => server.query(url, text);
  try {
    await work(context, read);
    for (const gateway of running) gateway.child.kill('SIGTERM');
    await Promise.all([...running].map(({ closed }) => closed));
    return { requests: context.next.number, ...(await inspect(read, upstream.served, context.seen)) };
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    upstream.closeAllConnections();
    upstream.close();
  }
}

/** Waits for a condition; the result is inspected in any case. */
async function until(isTrue, ms = 120_000) {
  for (const end = performance.now() + ms; performance.now() < end && !(await isTrue()); ) await sleep(5);
}

const countEnds = (seen) => seen.filter(({ hasEnd }) => hasEnd).length;

/** Requests that did not end well. */
const findFailures = (seen) =>
  seen.filter(({ hasEnd, status }) => !hasEnd || status !== 200).map(({ number, status }) => `${number} ended with ${status}`);

/** Kills one of two nodes, `kills` times. The other one closes what it left open, and none of its own requests fails. */
export async function proveNodeKills(place, kills, streams, random = Math.random) {
  const survivors = [];
  const result = await withNodes(place, async ({ start, seen, next }, read) => {
    const lasting = await start();
    const clients = Array.from({ length: streams / 2 }, () => askUntilKilled(lasting, next, seen));
    for (let kill = 0; kill < kills; kill++) {
      const gateway = await start();
      const others = Array.from({ length: streams / 2 }, () => askUntilKilled(gateway, next, seen));
      const ends = Math.floor(random() * streams * 1.5);
      await until(() => countEnds(seen.filter((entry) => entry.gateway === gateway)) >= ends);
      await sleep(random() * 100);
      // In the middle of a stream, at least of one.
      await until(() => seen.some((entry) => entry.gateway === gateway && entry.hasContent && !entry.hasEnd));
      gateway.isKilled = true;
      gateway.child.kill('SIGKILL');
      await Promise.all([gateway.closed, ...others]);
    }
    lasting.isKilled = true;
    await Promise.all(clients);
    survivors.push(...findFailures(seen.filter(({ gateway }) => gateway === lasting)));
    // Until the surviving node has noticed: its own heartbeats must have been steady for as long as a lease.
    await until(async () => (await countOpen(read)) === 0);
  });
  return { ...result, violations: [...result.violations, ...survivors] };
}

const countOpen = async (read) => (await read("SELECT count(*) AS n FROM exchanges WHERE state = 'open'"))[0].n;

/** Restarts the database under load, `times` times. No request fails. */
export async function proveDatabaseRestarts(place, times, streams) {
  const failures = [];
  const result = await withNodes(place, async ({ start, seen, next }) => {
    const gateways = [await start(), await start()];
    const clients = gateways.flatMap((gateway) => Array.from({ length: streams / 2 }, () => askUntilKilled(gateway, next, seen)));
    for (let round = 0; round < times; round++) {
      await waitForEnds(seen, countEnds(seen) + streams * 2);
      await place.server.halt(round % 2 === 0 ? 'SIGINT' : 'SIGQUIT');
      await sleep(300);
      await place.server.resume();
    }
    await waitForEnds(seen, countEnds(seen) + streams * 2);
    for (const gateway of gateways) gateway.isKilled = true;
    await Promise.all(clients);
    failures.push(...findFailures(seen));
  });
  return { ...result, violations: [...result.violations, ...failures] };
}

/** Nodes that are replaced accept requests for a moment after SIGTERM. */
const withDelay = (place) => ({ ...place, settings: [...(place.settings ?? []), 'limits: { drain_delay: 2s }'] });

/** Replaces these of two nodes, one after the other, under load. Clients use the nodes that are ready, as a load balancer does. */
export async function proveRollingRestart(place, streams, replaced = [0, 1]) {
  const failures = [];
  const result = await withNodes(withDelay(place), async ({ start, seen, next }) => {
    const balancer = { nodes: [await start(), await start()], ready: [], isOver: false };
    const watching = watchNodes(balancer);
    while (balancer.ready.length < 2) await sleep(10);
    const clients = Array.from({ length: streams }, () => askBalanced(balancer, next, seen));
    for (const index of replaced) {
      await waitForEnds(seen, countEnds(seen) + streams * 2);
      const old = balancer.nodes[index];
      old.child.kill('SIGTERM');
      await old.closed;
      balancer.nodes[index] = await start();
      while (balancer.ready.length < 2) await sleep(10);
    }
    await waitForEnds(seen, countEnds(seen) + streams * 2);
    balancer.isOver = true;
    await Promise.all([watching, ...clients]);
    failures.push(...findFailures(seen));
  });
  return { ...result, violations: [...result.violations, ...failures] };
}

/**
 * Replaces both nodes, one after the other, behind a balancer that makes no checks of its own and notices only that a node refuses
 * connections, as nginx does. `place.startBalancer(ports)` starts it.
 */
export async function proveBalancedRestart({ startBalancer, ports, ...place }, streams) {
  const failures = [];
  const result = await withNodes(withDelay(place), async ({ start, seen, next }) => {
    const nodes = [];
    for (const port of ports) nodes.push(await start('--port', String(port)));
    const balancer = { url: (await startBalancer(ports)).url, isKilled: false, isLate: false };
    const clients = Array.from({ length: streams }, () => askUntilKilled(balancer, next, seen));
    for (const [index, port] of ports.entries()) {
      await waitForEnds(seen, countEnds(seen) + streams * 2);
      nodes[index].child.kill('SIGTERM');
      await nodes[index].closed;
      nodes[index] = await start('--port', String(port));
    }
    await waitForEnds(seen, countEnds(seen) + streams * 2);
    balancer.isKilled = true;
    await Promise.all(clients);
    failures.push(...findFailures(seen));
  });
  return { ...result, violations: [...result.violations, ...failures] };
}

async function watchNodes(balancer) {
  while (!balancer.isOver) {
    const checks = balancer.nodes.map(async (node) => ((await isReady(node)) ? [node] : []));
    balancer.ready = (await Promise.all(checks)).flat();
    await sleep(50);
  }
}

const isReady = async ({ url }) => {
  const response = await fetch(`${url}/health/ready`).catch(() => undefined);
  await response?.text();
  return response?.ok ?? false;
};

async function askBalanced(balancer, next, seen) {
  while (!balancer.isOver) {
    const number = next.number++;
    const gateway = balancer.ready[number % balancer.ready.length];
    const entry = { number, id: undefined, hasContent: false, hasEnd: false, gateway };
    seen.push(entry);
    await ask(gateway.url, entry);
  }
}
