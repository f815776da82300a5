/** Suites that need recordings, or programs of clients that are kept beside them: they run with `npm run test:recordings` only. */
export const RECORDED_ONLY: readonly string[] = ['test/clients/sdks.test.ts', 'test/recorded/shapes.test.ts'];
