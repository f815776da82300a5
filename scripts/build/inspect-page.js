/** The page of `sluice inspect --html`: one file with its script and its style. The command puts the data in. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { CONSOLE, ROOT } from './packages.js';

/** Where the data goes; `server/console.ts` has the same text. */
const PLACE = '%SLUICE_DATA%';

/** Bundles the page with vite's `build`. Resolves with its text. */
export async function buildInspectPage(build, configFile) {
  const input = join(ROOT, CONSOLE.folder, 'src/inspector/standalone.tsx');
  const result = await build({
    configFile,
    build: { write: false, cssCodeSplit: false, rolldownOptions: { input, output: { codeSplitting: false } } },
  });
  const { output } = Array.isArray(result) ? result[0] : result;
  const chunks = output.filter(({ type }) => type === 'chunk');
  if (chunks.length !== 1) throw new Error(`the page of the inspector has ${chunks.length} scripts instead of one`);
  const styles = output.filter(({ fileName }) => fileName.endsWith('.css')).map(({ source }) => String(source));
  return renderPage(chunks[0].code, styles.join(''));
}

/** In a script, the end tag would end it; in strings and expressions, a backslash before the slash changes nothing. */
const escapeScript = (code) => code.replaceAll(/<\/(script)/gi, '<\\/$1').replaceAll('<!--', '<\\!--');

const digest = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function renderPage(code, style) {
  const script = escapeScript(code);
  const policy = [
    "default-src 'none'",
    `script-src ${digest(script)}`,
    `style-src ${digest(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Sluice inspector</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="data">${PLACE}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}
