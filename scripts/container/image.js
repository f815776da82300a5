/**
 * Repeats the steps of a Dockerfile in folders, one for each stage: an image without a daemon. Paths of the image (`/sluice`, `/data`) are folders
 * in that of the stage, so RUN steps may name only paths that a WORKDIR or VOLUME of the file names.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { listInherited, readCopy, readDockerfile, readEnv, readList } from './dockerfile.js';
import { readIgnore } from './ignore.js';

/**
 * The files that a build gets, relative to the root of the repository.
 * @param {string} root
 * @returns {string[]}
 */
export function listContext(root) {
  const ignore = readIgnore(readFileSync(join(root, '.dockerignore'), 'utf8'));
  const list = (folder) =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory()) return ignore.enters(path) ? list(path) : [];
      return ignore.keeps(path) ? [path] : [];
    });
  return list('');
}

/** Runs all stages below a folder. The last one is the image. */
export class ImageBuild {
  #stages;
  #folder;
  #env;
  #ids;
  #roots;

  /**
   * @param {{ root: string, folder: string, env: Record<string, string>, ids: { uid: number, gid: number } }} options
   * `env`: variables of the base image; `ids`: who takes the place of the image's user.
   */
  constructor({ root, folder, env, ids }) {
    this.#stages = readDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8'));
    this.#folder = folder;
    this.#env = env;
    this.#ids = ids;
    const all = this.#stages.flatMap(({ instructions }) => instructions);
    this.#roots = [...new Set(all.filter(({ keyword }) => /^(WORKDIR|VOLUME)$/.test(keyword)).map(({ text }) => text))];
    for (const path of listContext(root)) copy(join(root, path), join(folder, 'context', path));
  }

  /** Runs every stage, and returns what a container of the last one is started with. */
  run() {
    for (const stage of this.#stages) this.#runStage(stage);
    return this.#describe();
  }

  #runStage(stage) {
    const place = join(this.#folder, stage.name);
    const base = join(this.#folder, stage.from);
    mkdirSync(place, { recursive: true });
    if (this.#stages.some(({ name }) => name === stage.from)) cpSync(base, place, { recursive: true, verbatimSymlinks: true });
    const inherited = listInherited(this.#stages, stage);
    const state = { env: this.#env, workdir: '/' };
    for (const [at, { keyword, text }] of inherited.entries()) {
      if (keyword === 'ENV') state.env = { ...state.env, ...readEnv(text, state.env) };
      else if (keyword === 'WORKDIR') {
        state.workdir = posix.resolve(state.workdir, text);
        mkdirSync(join(place, state.workdir), { recursive: true });
      } else if (at < inherited.length - stage.instructions.length) continue;
      else if (keyword === 'COPY') this.#copy(place, state.workdir, text);
      else if (keyword === 'RUN') this.#execute(place, state, text);
    }
  }

  #copy(place, workdir, text) {
    const { from, sources, destination } = readCopy(text);
    const origin = join(this.#folder, from ?? 'context');
    const target = join(place, posix.resolve(workdir, destination));
    for (const source of sources) {
      const path = join(origin, source);
      if (!existsSync(path)) throw new Error(`COPY ${text}: ${source} does not exist, or .dockerignore drops it`);
      if (sources.length > 1 && !destination.endsWith('/'))
        throw new Error(`COPY ${text}: the destination of several sources must end with a slash`);
      // Docker copies what is in a folder, and a file into a folder only when the destination ends with a slash.
      if (statSync(path).isDirectory()) copy(path, target);
      else copy(path, destination.endsWith('/') ? join(target, basename(source)) : target);
    }
  }

  #execute(place, { env, workdir }, text) {
    console.log(`RUN ${text}`);
    const started = performance.now();
    const command = this.#mapPaths(place, text).replaceAll(
      / -([og]) 1000\b/g,
      (_, flag) => ` -${flag} ${flag === 'o' ? this.#ids.uid : this.#ids.gid}`,
    );
    execFileSync('sh', ['-ec', command], {
      cwd: join(place, workdir),
      env: this.#mapEnv(place, env),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    console.log(`    ${((performance.now() - started) / 1000).toFixed(1)} s`);
  }

  #mapPaths(place, text) {
    return this.#roots.reduce(
      (result, path) => result.replaceAll(new RegExp(`(^|[\\s=:"'])${path}(?=$|[\\s/:"'])`, 'g'), `$1${place}${path}`),
      text,
    );
  }

  #mapEnv(place, env) {
    return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, this.#mapPaths(place, value)]));
  }

  #describe() {
    const stage = this.#stages.at(-1);
    const all = listInherited(this.#stages, stage);
    const last = (keyword) => all.findLast((one) => one.keyword === keyword)?.text ?? '';
    let env = this.#env;
    for (const { keyword, text } of all) if (keyword === 'ENV') env = { ...env, ...readEnv(text, env) };
    const place = join(this.#folder, stage?.name ?? '');
    return {
      place,
      env: this.#mapEnv(place, env),
      workdir: join(place, last('WORKDIR')),
      command: readList(last('ENTRYPOINT')),
      args: readList(last('CMD')),
    };
  }
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}

/**
 * Bytes of all files below a folder.
 * @param {string} folder
 * @returns {number}
 */
export const measure = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
