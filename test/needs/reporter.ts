import type { Reporter, TestModule, TestSpecification, Vitest } from 'vitest/node';
import { type Need, REASONS } from './reasons.ts';

/** Minutes that the whole suite takes on a machine with 2 cores and nothing else to do. */
const ABOUT_MINUTES = 6;

/** Says at the start how long the tests take, and at the end what was skipped and how to enable it. */
export class NeedsReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunStart(chosen: readonly TestSpecification[]): Promise<void> {
    const all = await this.#vitest?.globTestSpecifications();
    if (chosen.length === all?.length) console.log(`the whole suite takes about ${ABOUT_MINUTES} minutes on 2 cores\n`);
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = new Map<Need, number>();
    for (const need of modules.flatMap(listNeeds)) counts.set(need, (counts.get(need) ?? 0) + 1);
    for (const [need, count] of [...counts].sort(([, a], [, b]) => b - a)) console.log(describeSkipped(need, count));
  }
}

const describeSkipped = (need: Need, count: number): string =>
  `skipped ${count} ${count === 1 ? 'test' : 'tests'}: ${REASONS[need].missing} (${REASONS[need].enable})`;

/** What the skipped tests of a file lack. Tests of a table that do not apply to a row lack nothing. */
const listNeeds = (module: TestModule): Need[] =>
  [...module.children.allTests('skipped')].flatMap((test) => test.meta().lacks ?? []);
