/**
 * The time to the first token over WebSocket beside HTTP, in one run and by turns (`--rounds 300` for fewer). Exit code 1 when the median over
 * WebSocket is above that over HTTP by more than 10 % and more than the difference between HTTP and HTTP. Run `npm run build` first.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureFirstTokens } from '../../packages/gateway/test/responses/first-token.js';
import { summarize } from '../method/statistics.js';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '2000' } } });
const folder = mkdtempSync(join(tmpdir(), 'sluice-first-token-'));
try {
  const samples = await measureFirstTokens(folder, Number(options.rounds));
  const [http, again, webSocket] = [samples.http, samples.httpAgain, samples.webSocket].map(summarize);
  const show = ({ median, p10, p90 }) => `${median.toFixed(2)} ms (p10 ${p10.toFixed(2)}, p90 ${p90.toFixed(2)})`;
  console.log(
    `first token after: HTTP ${show(http)}, HTTP again ${show(again)}, WebSocket ${show(webSocket)}; ${options.rounds} rounds`,
  );
  const slowest = Math.max(http.median, again.median);
  process.exitCode = webSocket.median <= slowest + Math.max(0.1 * slowest, Math.abs(http.median - again.median)) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
