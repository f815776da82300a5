// Mutants that no caller could tell from the code, each with the reason.
// file: [[a part of the line, ['code → text', …], reason], …]
const LIST = {};

const changeOf = ({ code, text }) => `${code} → ${text}`;

const entries = Object.entries(LIST).flatMap(([file, rows]) =>
  rows.flatMap(([line, changes, why]) => changes.map((change) => ({ file, line, change, why, used: false }))),
);

export const equivalents = {
  reasonFor(mutant) {
    const found = entries.find(
      ({ file, line, change }) => mutant.file.endsWith(`/${file}`) && mutant.source.includes(line) && changeOf(mutant) === change,
    );
    if (found) found.used = true;
    return found?.why;
  },
  unused: () => entries.filter(({ used }) => !used).map(({ file, line, change }) => `${file}: ${line}: ${change}`),
};
