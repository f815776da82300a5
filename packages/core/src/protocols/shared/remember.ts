/**
 * `find`, which is asked once for each text, and again only when there have been too many: names of models, and paths that hold them, are the
 * client's, and it may make up any number of them.
 */
export function remember<T extends object>(most: number, find: (text: string) => T): (text: string) => T {
  const found = new Map<string, T>();
  return (text) => {
    const known = found.get(text);
    if (known) return known;
    const value = find(text);
    if (found.size >= most) found.clear();
    found.set(text, value);
    return value;
  };
}
