/**
 * Loaded into a program with `--import`: writes the addresses of all files that V8 compiled to the file SLUICE_CHECK_MODULES when the process exits. A
 * message over the IPC channel ends the process. The inspector reports modules of both kinds, wherever they are imported from.
 */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

const found = new Set();
const session = new Session();
session.connect();
session.on('Debugger.scriptParsed', ({ params: { url } }) => {
  if (url.startsWith('file:')) found.add(url);
});
session.post('Debugger.enable');

process.on('exit', () => writeFileSync(process.env.SLUICE_CHECK_MODULES, JSON.stringify([...found])));
if (process.channel) {
  process.on('message', () => process.exit(0));
  process.on('disconnect', () => process.exit());
  process.channel.unref();
}
