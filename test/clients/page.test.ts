import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CLIENTS, type Client, GROUPS } from '../../packages/gateway/src/clients/clients.ts';
import { setupLines } from '../../packages/gateway/src/clients/setup.ts';

// docs/clients.md from the table of clients: `npx vitest run test/clients/page.test.ts -u` writes it.

const TARGET = { url: 'http://127.0.0.1:4141', key: 'any', model: 'provider/model' };

const HEAD = `# Clients

Point a client at the gateway, and it uses any model of it. The settings below are for a gateway on the same machine without client keys; \`sluice env CLIENT\` prints them with your address, key and model. Elsewhere, replace \`http://127.0.0.1:4141\` by the address of the gateway, \`any\` by your key and \`provider/model\` by a model such as \`openai/gpt-5\` or a name from \`models\` of \`sluice.yaml\`.

- \`sluice run CLIENT\` starts a client with its settings for one run, and a gateway if none runs. Nothing is written to your settings.
- \`eval "$(sluice env CLIENT)"\` sets the variables of this shell.
- \`sluice env CLIENT --file\` prints the content of a settings file alone. If the file exists already, add to it instead of replacing it.

[Which clients are tested](clients-tested.md) with every upstream, and what they do with broken streams.`;

test('docs/clients.md shows the settings of every client', async () => {
  const sections = Object.entries(GROUPS).map(([group, title]) =>
    Object.entries(CLIENTS)
      .filter(([, client]) => client.group === group)
      .map(([id, client], i) => (i === 0 ? `## ${title}\n` : '') + formatClient(id, client))
      .join('\n\n'),
  );
  const page = fileURLToPath(new URL('../../docs/clients.md', import.meta.url));
  await expect(`${[HEAD, ...sections].join('\n\n')}\n`).toMatchFileSnapshot(page);
});

function formatClient(id: string, client: Client): string {
  const { file, steps, notes = [], ...rest } = client;
  const variables = setupLines(rest, TARGET, 'bash');
  return [
    `### ${client.title}: \`sluice env ${id}\``,
    ...(client.install === undefined
      ? []
      : [`Install it by \`${client.install}\`. \`sluice run ${id}\` starts it. Its settings:`, '']),
    ...(variables.length === 0 ? [] : [fence(chooseLanguage(id, client), variables.join('\n'))]),
    ...(file ? ['', `In \`${file.home}\`:`, fence(file.home.split('.').at(-1) ?? '', file.text(TARGET))] : []),
    ...(steps ? [fence('txt', steps(TARGET).join('\n'))] : []),
    ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `- ${note.charAt(0).toUpperCase()}${note.slice(1)}.`)]),
  ]
    .join('\n')
    .replace(/\n{3,}/g, '\n\n');
}

/** The tests of the documentation cannot check code that needs packages which are not installed. */
const chooseLanguage = (id: string, { snippet }: Client): string =>
  id === 'agents' ? 'js unchecked' : (snippet?.language ?? 'sh');

const fence = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;
