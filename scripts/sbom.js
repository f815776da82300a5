/** Lists what a package installs, as CycloneDX 1.6, from the lockfile. Without time and random ids, so that it is reproducible. */

/** The bill of materials of a package. */
export function buildSbom(manifest, lock, folder) {
  const places = collectPlaces(folder, lock.packages);
  const components = [...places]
    .filter((place) => place !== folder)
    .map((place) => describe(place, lock.packages))
    .toSorted((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  const refs = [folder, ...[...places].filter((place) => place !== folder)].map((place) => ({
    ref: findRef(place, lock.packages),
    dependsOn: listDependencies(place, lock.packages)
      .map((dependency) => findRef(dependency, lock.packages))
      .toSorted(),
  }));
  const ref = purl(manifest.name, manifest.version);
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'library',
        'bom-ref': ref,
        name: manifest.name,
        version: manifest.version,
        purl: ref,
        licenses: [{ license: { id: manifest.license } }],
      },
    },
    components,
    dependencies: refs.toSorted((a, b) => (a.ref < b.ref ? -1 : 1)),
  };
}

/** A package and all that it needs to run. */
function collectPlaces(start, packages) {
  const places = new Set([start]);
  for (const place of places) for (const dependency of listDependencies(place, packages)) places.add(dependency);
  return places;
}

function listDependencies(place, packages) {
  const { dependencies = {}, optionalDependencies = {} } = packages[place];
  return Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((name) => resolve(name, place, packages) ?? []);
}

/** The nearest `node_modules` that has the package, as node looks it up. Links of workspaces lead to their folder. */
function resolve(name, from, packages) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    const found = packages[place];
    if (found) return found.link ? found.resolved : place;
    if (folder === '') return undefined;
  }
}

const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

const readName = (place, packages) =>
  packages[place].name ?? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);

const findRef = (place, packages) => purl(readName(place, packages), packages[place].version);

function describe(place, packages) {
  const { version, license, integrity } = packages[place];
  const ref = findRef(place, packages);
  return {
    type: 'library',
    'bom-ref': ref,
    name: readName(place, packages),
    version,
    purl: ref,
    ...(license && { licenses: [/\s/.test(license) ? { expression: license } : { license: { id: license } }] }),
    ...(integrity && { hashes: [describeHash(integrity)] }),
  };
}

const ALGORITHMS = { sha512: 'SHA-512', sha256: 'SHA-256', sha1: 'SHA-1' };

function describeHash(integrity) {
  const [algorithm, value] = integrity.split(' ', 1)[0].split(/-(.*)/s);
  return { alg: ALGORITHMS[algorithm], content: Buffer.from(value, 'base64').toString('hex') };
}
