/** Where `npm run install-sluice` installs to, and how that folder gets on PATH. Pure, so that tests cover every system. */
import { posix, win32 } from 'node:path';

const pathOf = (platform) => (platform === 'win32' ? win32 : posix);

/** Chooses npm's global prefix when it is writable, else `~/.local`, which needs no privileges. */
export function choosePrefix({ asked, npmPrefix, isWritable, home, platform }) {
  if (asked !== undefined) return asked;
  return isWritable(npmPrefix) ? npmPrefix : pathOf(platform).join(home, '.local');
}

/** The folder of commands of a prefix: npm uses the prefix itself on Windows, and `bin` elsewhere. */
export const findBin = (prefix, platform) => (platform === 'win32' ? prefix : posix.join(prefix, 'bin'));

/** Whether PATH has a folder. Windows ignores case and final separators. */
export function isOnPath(folder, path, platform) {
  const { delimiter, normalize } = pathOf(platform);
  const plain = (text) => {
    const short = normalize(text).replace(/(?<=.)[\\/]+$/, '');
    return platform === 'win32' ? short.toLowerCase() : short;
  };
  return path.split(delimiter).some((entry) => entry !== '' && plain(entry) === plain(folder));
}

/** The line that puts a folder on PATH, for the user's shell. */
export function describePathLine(folder, { shell, platform }) {
  if (platform === 'win32')
    return `[Environment]::SetEnvironmentVariable('Path', '${quoteSingle(folder)};' + [Environment]::GetEnvironmentVariable('Path', 'User'), 'User')`;
  const name = posix.basename(shell ?? 'sh');
  // Terminals of macOS start login shells, which read another file.
  if (name === 'bash' && platform === 'darwin') return addExport('~/.bash_profile')(folder);
  const find = Object.hasOwn(PATH_LINES, name) ? PATH_LINES[name] : PATH_LINES.sh;
  return find(folder);
}

/** PowerShell doubles single quotes. */
const quoteSingle = (text) => text.replaceAll("'", "''");

/** For a POSIX shell, inside of double quotes. */
const quoteDouble = (text) => text.replace(/["\\$`]/g, '\\$&');

const quoteWord = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

const addExport = (file) => (folder) => `echo ${quoteWord(`export PATH="${quoteDouble(folder)}:$PATH"`)} >> ${file}`;

const PATH_LINES = {
  bash: addExport('~/.bashrc'),
  zsh: addExport('~/.zshrc'),
  // fish knows these two escapes inside of single quotes.
  fish: (folder) => `fish_add_path '${folder.replace(/['\\]/g, '\\$&')}'`,
  sh: addExport('~/.profile'),
};
