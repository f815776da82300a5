/** Code blocks of Markdown pages, in order. Tests of the documentation and the check of the guides read pages with the same rules. */

const FENCE = /^```(\S+)[ \t]*([^\n]*)\n([\s\S]*?)^```/gm;

/**
 * @typedef {object} Fence
 * @property {number} index where the block begins in the text
 * @property {number} line its line, from 1
 * @property {string} language the first word of the info string
 * @property {string[]} flags the other words
 * @property {string} code
 */

/**
 * @param {string} text
 * @returns {Fence[]}
 */
export const listFences = (text) =>
  [...text.matchAll(FENCE)].map(({ index, 1: language = '', 2: info = '', 3: code = '' }) => ({
    index,
    line: text.slice(0, index).split('\n').length,
    language,
    flags: info.split(' ').filter(Boolean),
    code,
  }));

/**
 * The value of a flag such as `exit=1`.
 * @param {readonly string[]} flags
 * @param {string} name
 */
export const readFlag = (flags, name) => flags.find((flag) => flag.startsWith(`${name}=`))?.slice(name.length + 1);
