// The examples name packages as users do; some of them are here under the names of their majors.
import { register } from 'node:module';

const NAMES = { '@google/genai': 'google-genai-2' };

const hooks = `
const names = ${JSON.stringify(NAMES)};
export const resolve = (name, context, next) => next(names[name] ?? name, context);
`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`, import.meta.url);
