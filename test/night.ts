/** Whether there is time for the long form of tests: `npm run nightly -- --only long-tests` sets `SLUICE_NIGHT=1`. */
export const IS_NIGHT: boolean = process.env['SLUICE_NIGHT'] === '1';
