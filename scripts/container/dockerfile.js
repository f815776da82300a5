/** Reads a Dockerfile: its stages and their instructions. What this reader does not know is an error, so that nothing is skipped silently. */

/** Instructions that the check repeats or compares. */
const KNOWN = new Set(['FROM', 'WORKDIR', 'ENV', 'COPY', 'RUN', 'USER', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD']);

/**
 * @typedef {{ keyword: string, text: string }} Instruction
 * @typedef {{ name: string, from: string, instructions: Instruction[] }} Stage
 */

/**
 * The stages of a Dockerfile, in order. A stage without a name has its number.
 * @param {string} source
 * @returns {Stage[]}
 */
export function readDockerfile(source) {
  /** @type {Stage[]} */
  const stages = [];
  for (const { keyword, text } of listInstructions(source)) {
    if (!KNOWN.has(keyword)) throw new Error(`Dockerfile: unknown instruction ${keyword}`);
    if (keyword === 'FROM') stages.push(readFrom(text, stages.length));
    else {
      const stage = stages.at(-1);
      if (!stage) throw new Error(`Dockerfile: ${keyword} before the first FROM`);
      stage.instructions.push({ keyword, text });
    }
  }
  return stages;
}

/** @returns {Instruction[]} */
function listInstructions(source) {
  const lines = source.split('\n').filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#'));
  const whole = lines.join('\n').replaceAll(/\\\n\s*/g, ' ');
  return whole.split('\n').map((line) => {
    const [, keyword = '', text = ''] = /^(\S+)\s+(.+)$/.exec(line.trim()) ?? [];
    return { keyword: keyword.toUpperCase(), text };
  });
}

function readFrom(text, number) {
  const match = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(text);
  if (!match) throw new Error(`Dockerfile: FROM ${text} is not supported`);
  return { from: match[1] ?? '', name: match[2] ?? String(number), instructions: [] };
}

/**
 * The images that the stages begin with, without those that are stages themselves.
 * @param {Stage[]} stages
 */
export function listBaseImages(stages) {
  const names = new Set(stages.map(({ name }) => name));
  return stages.map(({ from }) => from).filter((from) => !names.has(from));
}

/**
 * The instructions of a stage after those of the stages that it begins with.
 * @param {Stage[]} stages
 * @param {Stage | undefined} stage
 * @returns {Instruction[]}
 */
export function listInherited(stages, stage) {
  if (!stage) return [];
  return [
    ...listInherited(
      stages,
      stages.find(({ name }) => name === stage.from),
    ),
    ...stage.instructions,
  ];
}

/**
 * The sources and the destination of COPY, and the stage that it copies from.
 * @param {string} text
 */
export function readCopy(text) {
  const words = text.split(/\s+/);
  const flags = words.filter((word) => word.startsWith('--'));
  const unknown = flags.find((flag) => !flag.startsWith('--from='));
  if (unknown) throw new Error(`Dockerfile: COPY ${unknown} is not supported`);
  const paths = words.filter((word) => !word.startsWith('--'));
  return { from: flags[0]?.slice('--from='.length), sources: paths.slice(0, -1), destination: paths.at(-1) ?? '' };
}

/**
 * `A=1 B=$A/2`, with variables of this environment.
 * @param {string} text
 * @param {Record<string, string>} env
 */
export function readEnv(text, env) {
  return Object.fromEntries(
    text.split(/\s+/).map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1 || /["'\\]/.test(pair)) throw new Error(`Dockerfile: ENV ${pair} is not supported`);
      return [
        pair.slice(0, at),
        pair.slice(at + 1).replaceAll(/\$(?:(\w+)|\{(\w+)\})/g, (_, plain, braced) => env[plain ?? braced] ?? ''),
      ];
    }),
  );
}

/**
 * ENTRYPOINT or CMD in the form of a list.
 * @param {string} text
 * @returns {string[]}
 */
export function readList(text) {
  const list = JSON.parse(text);
  if (!Array.isArray(list)) throw new Error(`Dockerfile: ${text} is not a list`);
  return list;
}
