import { UsageError } from './arguments.ts';
import { CLIENTS, type Client, DEMO_MODEL, type Target } from './clients.ts';
import { oneLine } from './escape.ts';
import { didYouMean } from './suggest.ts';

/** Where the gateway is when nobody says otherwise. */
const USUAL_URL = 'http://127.0.0.1:4141';

/** Options of the commands that set a client up. */
export const TARGET_OPTIONS = {
  url: { type: 'string', value: 'URL', summary: `where the gateway is (${USUAL_URL})` },
  model: {
    type: 'string',
    value: 'M',
    summary: `the model to ask for; the client's own when left out, ${DEMO_MODEL} where it has none`,
  },
  key: {
    type: 'string',
    value: 'K',
    summary: 'the key that the gateway wants (SLUICE_KEY of the environment; "any" where it wants none)',
  },
} as const;

/** The row of the table that is meant. */
export function chooseClient(name: string | undefined): { id: string; client: Client } {
  const list = Object.keys(CLIENTS).join(', ');
  if (name === undefined) throw new UsageError(`say which client: ${list}`);
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client) return { id: name, client };
  throw new UsageError(`unknown client "${oneLine(name)}"${didYouMean(name, Object.keys(CLIENTS))}\nKnown are: ${list}`);
}

export const chooseModel = ({ needsModel }: Client, model: string | undefined): Pick<Target, 'model'> => {
  const chosen = model ?? (needsModel ? DEMO_MODEL : undefined);
  return chosen === undefined ? {} : { model: chosen };
};

/** The address of a gateway. Each client adds the path it needs: one that was given along is taken off. */
export function chooseUrl(text: string = USUAL_URL): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.username === '';
  if (!isUsable) throw new UsageError(`--url must be an address such as ${USUAL_URL}, not "${oneLine(text.slice(0, 200))}"`);
  return url.origin + url.pathname.replace(/\/+(v1(beta)?)?\/*$/, '');
}
