/**
 * Loaded into gateways that write or use a data folder of `fixtures/upgrade`: their clock has an offset, so that days and months of the
 * folder do not depend on when it is used, and the name of the machine is not recorded.
 */
const { syncBuiltinESMExports } = require('node:module');
const os = require('node:os');

const offset = Number(process.env.UPGRADE_CLOCK_OFFSET_MS);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + offset] : args));
  }

  static now() {
    return RealDate.now() + offset;
  }
};
os.hostname = () => 'upgrade';
syncBuiltinESMExports();
