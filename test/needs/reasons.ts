interface Reason {
  /** Why tests are skipped. */
  readonly missing: string;
  /** What to do to run them. */
  readonly enable: string;
}

/** What tests need beside node and the packages. Tests without what they need are skipped, and the end of a run says so. */
export const REASONS = {
  postgres: { missing: 'PostgreSQL is not installed', enable: 'apt-get install postgresql' },
  redis: { missing: 'Redis is not installed', enable: 'apt-get install redis-server' },
  nginx: { missing: 'nginx is not installed', enable: 'apt-get install nginx-light' },
  promtool: { missing: 'promtool is not installed', enable: 'apt-get install prometheus' },
  chromium: {
    missing: 'Chromium is not installed',
    enable: 'apt-get install chromium-headless-shell or chromium, or set CHROMIUM',
  },
  systemd: { missing: 'systemd is not installed', enable: 'apt-get install systemd' },
  helm: { missing: 'Helm is not installed', enable: 'install Helm 3, or Go and then "npm run chart"' },
  root: { missing: 'files cannot be given to another user', enable: 'run the tests as root, in a folder that others can read' },
  bash: { missing: 'bash is not installed', enable: 'apt-get install bash' },
  zsh: { missing: 'zsh is not installed', enable: 'apt-get install zsh' },
  fish: { missing: 'fish is not installed', enable: 'apt-get install fish' },
  pwsh: { missing: 'PowerShell is not installed', enable: 'install pwsh' },
  python: { missing: 'Python is not installed', enable: 'apt-get install python3' },
  script: { missing: '"script" is not installed', enable: 'apt-get install bsdutils' },
  build: { missing: 'the packages are not built', enable: 'npm run build' },
  tmpfs: { missing: 'a small file system cannot be mounted', enable: 'run the tests as root' },
  linux: { missing: 'this is not Linux', enable: 'run the tests on Linux' },
  posix: { missing: 'this is Windows', enable: 'run the tests in WSL' },
} as const satisfies Record<string, Reason>;

export type Need = keyof typeof REASONS;

declare module 'vitest' {
  interface TaskMeta {
    /** What a skipped test lacks. */
    lacks?: Need;
  }
}
