import { expect, test } from 'vitest';
import { joinMetrics } from '../../src/observe/join-metrics.ts';

const page = (value: number): string => `# HELP a_total Things.
# TYPE a_total counter
a_total{kind="x {y}"} ${value}

# HELP b Others.
# TYPE b gauge
b ${value}
`;

test('samples of all workers are together, and each has the number of its worker', () => {
  expect(
    joinMetrics(
      new Map([
        [1, page(5)],
        [2, undefined],
        [3, page(7)],
      ]),
    ),
  ).toBe(`# HELP a_total Things.
# TYPE a_total counter
a_total{worker="1",kind="x {y}"} 5
a_total{worker="3",kind="x {y}"} 7

# HELP b Others.
# TYPE b gauge
b{worker="1"} 5
b{worker="3"} 7

# HELP sluice_worker_up Whether the worker has sent its metrics: 1 or 0.
# TYPE sluice_worker_up gauge
sluice_worker_up{worker="1"} 1
sluice_worker_up{worker="2"} 0
sluice_worker_up{worker="3"} 1
`);
});
