/**
 * Prints what is shared by the entry points of installed packages, in node itself and not in the test runner, which would load
 * the sources: `node identity.js SPECIFIER…`.
 */
const classes = new Map();
const result = { shared: 0, copies: [], renamed: [] };

for (const specifier of process.argv.slice(2)) {
  for (const [name, value] of Object.entries(await import(specifier))) {
    if (typeof value !== 'function' || !/^class\b/.test(Function.prototype.toString.call(value))) continue;
    if (value.name !== name) result.renamed.push(`${name} of ${specifier} is named ${value.name}`);
    if (!classes.has(name)) classes.set(name, value);
    else if (classes.get(name) === value) result.shared++;
    else result.copies.push(`${name} of ${specifier}`);
  }
}

const { convertRequest } = await import('@sluice/core/engine');
const { geminiCodec } = await import('@sluice/core/gemini/codec');
const { openaiChatCodec } = await import('@sluice/core/openai-chat/codec');
const { CodecError } = await import('@sluice/core');
try {
  convertRequest({ contents: 5 }, { from: geminiCodec, to: openaiChatCodec });
} catch (error) {
  result.thrown = [error instanceof CodecError, error.constructor.name];
}

console.log(JSON.stringify(result));
