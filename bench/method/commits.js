/** Checkouts of other commits, built, beside which this one is measured: `--against COMMIT`. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root folder of this checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, '.cache/bench/commits');

/**
 * The folder of a built checkout. `name` is a commit, branch or tag of this repository, or a folder that has a build. A commit is
 * checked out and built once.
 */
export function prepareCheckout(name, say = () => undefined) {
  if (existsSync(join(name, 'packages/core/dist/index.js'))) return resolve(name);
  const commit = findCommit(name);
  const folder = join(FOLDER, commit);
  const mark = join(folder, '.built');
  if (existsSync(mark)) return folder;
  say(`checking out and building ${name} (${commit.slice(0, 10)})`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Not a worktree: nothing of this repository changes, and `git status` of it stays as it is.
  const tar = execFileSync('git', ['archive', '--format=tar', commit], { cwd: ROOT, maxBuffer: 1 << 30 });
  execFileSync('tar', ['-x', '-C', folder], { input: tar });
  run(folder, 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
  run(folder, 'npm', ['run', '--silent', 'build']);
  writeFileSync(mark, commit);
  return folder;
}

function findCommit(name) {
  try {
    return execFileSync('git', ['rev-parse', '--verify', '--quiet', `${name}^{commit}`], { cwd: ROOT, encoding: 'utf8' }).trim();
  } catch {
    throw new Error(
      `--against: "${name}" is neither a commit of this repository nor a folder with a build (run \`npm run build\` there)`,
    );
  }
}

function run(cwd, program, args) {
  try {
    execFileSync(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')} failed in ${cwd}: ${String(error.stderr ?? error.message).slice(-2000)}`);
  }
}
