type Fields = Readonly<Record<string, string | string[] | undefined>>;

/** Headers with one string each. Usually they are already, and nothing is copied. */
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
 * Puts `content-disposition` first, so that node writes it unchanged. After a `content-length`, node encodes it as
 * UTF-8, which changes it or throws (`processHeader` in node's `_http_outgoing.js`).
 */
export function dispositionFirst(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { 'content-disposition': disposition, ...others } = headers;
  return disposition === undefined ? others : { 'content-disposition': disposition, ...others };
}
