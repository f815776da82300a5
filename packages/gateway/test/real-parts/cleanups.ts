type Cleanup = () => unknown;

const ofTest: Cleanup[] = [];
const ofFile: Cleanup[] = [];

/** Runs this after the test. For modules that test files of a thread share: hooks of their own would hold for the first file alone. */
export const afterTest = (cleanup: Cleanup): void => void ofTest.push(cleanup);

/** Runs this after the last test of the file. */
export const afterFile = (cleanup: Cleanup): void => void ofFile.push(cleanup);

/** The newest first. */
async function run(cleanups: Cleanup[]): Promise<void> {
  for (const clean of cleanups.splice(0).reverse()) await clean();
}

export const cleanTest = (): Promise<void> => run(ofTest);
export const cleanFile = (): Promise<void> => run(ofFile);
