/** Which source files run: by V8's precise coverage of the modules that tsc writes. */
import { Session } from 'node:inspector';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const packages = fileURLToPath(new URL('../../packages', import.meta.url));

/** The source files with a function that runs while `run` does. */
export async function listVisited(run) {
  const session = new Session();
  session.connect();
  const post = (method, params) =>
    new Promise((done, fail) => session.post(method, params, (error, result) => (error ? fail(error) : done(result))));
  await post('Profiler.enable');
  await post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await post('Profiler.takePreciseCoverage');
  await run();
  const { result } = await post('Profiler.takePreciseCoverage');
  session.disconnect();
  return listRun(result);
}

/** A module's own body is a function that starts at 0; it runs when the module is loaded. */
function listRun(coverage) {
  return coverage
    .filter(({ url }) => url.includes('/packages/') && url.includes('/out/'))
    .filter(({ functions }) => functions.some(({ ranges: [range] }) => range.count > 0 && range.startOffset > 0))
    .map(({ url }) => relative(packages, fileURLToPath(url)).replace('/out/', '/').replace(/\.js$/, '.ts'))
    .sort();
}
