// The program of workerd: a request runs the checks. Copied beside the bundle.
import { runChecks } from './checks.mjs';
import data from './data.mjs';

export default {
  async fetch() {
    return Response.json(await runChecks(data));
  },
};
