/** Joins the metrics of several processes to one page. */

interface Family {
  /** HELP and TYPE. */
  readonly head: readonly string[];
  readonly samples: string[];
}

/**
 * One page for all workers, by their numbers: every sample gets the label `worker`. Nothing is added up, because a sum is right for
 * counters alone, and because a counter begins at 0 again when its worker is replaced. A worker without a text did not respond.
 */
export function joinMetrics(texts: ReadonlyMap<number, string | undefined>): string {
  const families = new Map<string, Family>();
  for (const [number, text] of texts) if (text !== undefined) addText(families, number, text);
  const up = [...texts].map(([number, text]) => `sluice_worker_up{worker="${number}"} ${text === undefined ? 0 : 1}`);
  families.set('sluice_worker_up', { head: UP_HEAD, samples: up });
  return [...families.values()].map(({ head, samples }) => `${[...head, ...samples].join('\n')}\n`).join('\n');
}

const UP_HEAD = [
  '# HELP sluice_worker_up Whether the worker has sent its metrics: 1 or 0.',
  '# TYPE sluice_worker_up gauge',
] as const;

/** Samples of a metric must be together, whichever worker they are of. */
function addText(families: Map<string, Family>, number: number, text: string): void {
  let help = '';
  let current: Family | undefined;
  for (const line of text.split('\n')) {
    const [, kind, name = ''] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? [];
    if (kind === 'HELP') help = line;
    else if (kind === 'TYPE') {
      current = families.get(name) ?? { head: [help, line], samples: [] };
      families.set(name, current);
    } else if (line !== '') current?.samples.push(addLabel(line, number));
  }
}

const addLabel = (line: string, number: number): string =>
  line.replace(/^([\w:]+)(\{?)/, (_, name: string, brace: string) =>
    brace === '' ? `${name}{worker="${number}"}` : `${name}{worker="${number}",`,
  );
