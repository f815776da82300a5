import type { Running } from '../server/run.ts';
import { CLIENTS, DEMO_MODEL, type Target } from './clients.ts';
import type { Colors } from './colors.ts';
import { pasteLine } from './setup.ts';

/** What the screen says when the gateway listens: who answers, and what to paste. */
export function welcome({ url, state, file }: Running, { bold, dim, green, yellow }: Colors): string {
  const providers = [...state.providers.values()].filter(({ isDemo }) => !isDemo);
  const isDemo = providers.length === 0;
  const model = state.models.find((name) => !name.includes('*')) ?? (isDemo ? DEMO_MODEL : `${providers[0]?.id}/MODEL`);
  const lines = [
    `${green('●')} ${bold('Sluice')} listens on ${bold(url)}${file === undefined ? '' : dim(`  (${file})`)}`,
    '',
    ...(isDemo
      ? [
          'No key was found: the built-in demo model answers. Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY … and start again.',
        ]
      : [
          'Providers:',
          ...providers.map(({ id, title, keyFrom }) => `  ${id.padEnd(18)} ${title}${keyFrom ? dim(`  (${keyFrom})`) : ''}`),
        ]),
    ...state.warnings.map(({ message }) => `${yellow('!')} ${message}`),
    '',
    bold('Paste one of these:'),
    '',
    ...paste({ url: reachable(url), model, key: state.keys.length > 0 ? 'YOUR_KEY' : 'any' }, dim),
    '',
    `More clients: ${bold('sluice env CLIENT')} says what to set, ${bold('sluice run CLIENT')} starts it that way.`,
    dim(`Metrics: ${url}/metrics   Health: ${url}/health/ready   Stop: Ctrl-C`),
    '',
  ];
  return lines.join('\n');
}

/** Listening everywhere is no address that a client could ask. */
const reachable = (url: string): string => url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1');

const paste = (target: Target, dim: (text: string) => string): string[] =>
  Object.values(CLIENTS)
    .filter(({ isWelcomed }) => isWelcomed)
    .flatMap((client) => [dim(`# ${client.title}`), pasteLine(client, target)]);
