/** A hook for node's module loader: imports of a package lead to its modules instead of its bundle. */
import { pathToFileURL } from 'node:url';
import { listSources } from '../build/packages.js';

const MODULES = new Map(
  listSources().map(({ specifier, file }) => [
    specifier,
    pathToFileURL(file.replace('/src/', '/out/').replace(/\.ts$/, '.js')).href,
  ]),
);

export function resolve(specifier, context, next) {
  return next(MODULES.get(specifier) ?? specifier, context);
}
