/** What is built: the packages, and their entry points as `exports` of package.json lists them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root folder of the repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The packages that have a `dist`, in the order of their dependencies. `programs` are modules that `bin`, worker threads and child processes start.
 * The lab is private: the gateway contains what it uses of it.
 */
export const PACKAGES = [
  { name: '@sluice/core', folder: 'packages/core', programs: [] },
  { name: '@sluice/ai-sdk', folder: 'packages/ai-sdk', programs: [] },
  { name: '@sluice/langchain', folder: 'packages/langchain', programs: [] },
  {
    name: 'sluice',
    folder: 'packages/gateway',
    programs: ['cli/main', 'config/check-worker', 'store/sqlite/worker', 'store/sqlite/task'],
  },
];

/** The folders of all packages, the private ones too. */
export const SOURCES = [...PACKAGES.map(({ folder }) => folder), 'packages/lab'];

/**
 * The console: a private package whose build is a folder in that of the gateway. The page of `sluice inspect --html` is in a folder of its own,
 * because the gateway serves the files of this one.
 */
export const CONSOLE = {
  folder: 'packages/console',
  published: 'packages/gateway/dist/console',
  inspectPage: 'page/inspect.html',
};

/** The manifest of a package, by its folder. */
export const readManifest = (folder) => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));

/**
 * The entry points of a package: `{ subpath: './gemini', module: 'protocols/gemini/index' }`. `exports` is the only table: an
 * entry `./dist/X.js` is built from `src/X.ts`.
 */
export function listEntries(folder) {
  return Object.entries(readManifest(folder).exports).flatMap(([subpath, target]) => {
    if (typeof target === 'string') return [];
    const module = /^\.\/(?:dist|out)\/(.+)\.js$/.exec(target.default)?.[1];
    if (module === undefined || !existsSync(join(ROOT, folder, 'src', `${module}.ts`)))
      throw new Error(`${folder}/package.json: exports["${subpath}"] is ${target.default}, and has no source in src`);
    return [{ subpath, module }];
  });
}

/** The specifiers of all packages with their source files, for tools that read sources instead of builds. */
export function listSources() {
  return SOURCES.flatMap((folder) => {
    const { name } = readManifest(folder);
    return listEntries(folder).map(({ subpath, module }) => ({
      specifier: name + subpath.slice(1),
      file: join(ROOT, folder, 'src', `${module}.ts`),
    }));
  });
}
