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
