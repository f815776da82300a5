type Fields = Readonly<Record<string, string | string[] | undefined>>;

/** Headers, one text each. Nearly always they are already: nothing is copied then. */
export function joined(fields: Fields): Record<string, string> {
  if (isPlain(fields)) return fields;
  const all: Record<string, string> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value !== undefined) all[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return all;
}

function isPlain(fields: Fields): fields is Record<string, string> {
  for (const name in fields) if (typeof fields[name] !== 'string') return false;
  return true;
}

/**
 * Headers in an order in which node writes them to the byte. Behind a `content-length`, it reads a `content-disposition` as UTF-8, which changes
 * it, or throws (`processHeader` in node's `_http_outgoing.js`).
 */
export function dispositionFirst(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { 'content-disposition': disposition, ...others } = headers;
  return disposition === undefined ? others : { 'content-disposition': disposition, ...others };
}
