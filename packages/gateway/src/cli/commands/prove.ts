import { join } from 'node:path';
import type { Protocol } from '@sluice/core';
import { type Body, buildCase, type Proven, proveBody, shrink } from '@sluice/lab/prove';
import { oneLine } from '@sluice/lab/text';
import { EXIT } from '../../terminal/errors.ts';
import { chooseProtocols, findSources, forEachSource, isSkipped, type Source } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { type FileFailure, type FileProof, readProveInput, showProof, showSummary } from '../prove.ts';

interface Options {
  protocol: string | undefined;
  json: boolean;
  out: string | undefined;
}

/** `sluice prove`: checks that recordings are read and converted correctly however they are split. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const job: Job = { protocols: chooseProtocols(options.protocol), isJson: options.json, out: options.out };
  const proofs: FileProof[] = [];
  const code = await forEachSource(await findSources(words, io), io, async (source) => {
    const { proof, isUnreadable } = await proveSource(source, job, io);
    if (isSkipped(source, proof.error)) return 'skipped';
    proofs.push(proof);
    await printProof(proof, job, io);
    if (isUnreadable) return EXIT.unusable;
    return hasFailed(proof) ? EXIT.failed : EXIT.ok;
  });
  if (!job.isJson) await io.stdout.write(showSummary(proofs, reportStyle(io)));
  return code;
}

interface Job {
  protocols: readonly Protocol[];
  isJson: boolean;
  out: string | undefined;
}

const reportStyle = ({ stdout, env }: CliIo) => ({ colors: chooseColors(stdout, env), columns: stdout.columns });

const hasFailed = ({ error, failures }: FileProof): boolean => error !== null || failures.length > 0;

async function proveSource(source: Source, job: Job, io: CliIo): Promise<{ proof: FileProof; isUnreadable: boolean }> {
  const { file } = source;
  const input = await readProveInput(source, job.protocols);
  const proof: FileProof = { file, protocol: null, bytes: 0, properties: [], failures: [], notes: {}, error: null };
  if ('error' in input) return { proof: { ...proof, error: input.error }, isUnreadable: input.isUnreadable ?? false };
  const { notes } = proof;
  const options = {
    now: io.cpuTime,
    onNote: ({ code, feature }: { code: string; feature: string }): void => {
      const key = `${code} ${feature}`;
      notes[key] = (notes[key] ?? 0) + 1;
    },
  };
  for (const proven of proveBody(input, options)) {
    const { property, tried, failure } = proven;
    proof.properties.push({ property, tried, failed: failure ? 1 : 0 });
    if (failure) proof.failures.push(await buildFailure(input, proven, job, io));
  }
  return { proof: { ...proof, protocol: input.protocol, bytes: input.bytes.length }, isUnreadable: false };
}

/** Describes a failure; with `--out`, also writes the smallest case that shows it. */
async function buildFailure(body: Body, proven: Proven, { out }: Job, io: CliIo): Promise<FileFailure> {
  const failure = out === undefined ? proven.failure : shrink(body, proven, { now: io.cpuTime });
  const { id = '', message = '' } = failure ?? {};
  const fixture = out === undefined ? undefined : failure && buildCase(failure);
  if (out === undefined || !fixture) return { property: proven.property, id, message, case: null };
  await io.makeDirectory(out);
  const path = join(out, `${fixture.id}.jsonl`);
  const file = await io.createFile(path);
  await file.write(new TextEncoder().encode(`${JSON.stringify(fixture)}\n`));
  await file.commit();
  return { property: proven.property, id, message, case: path };
}

async function printProof(proof: FileProof, { isJson }: Job, io: CliIo): Promise<void> {
  if (!isJson) {
    await io.stdout.write(showProof(proof, reportStyle(io)));
    return;
  }
  for (const piece of formatJsonLine(proof) ?? []) await io.stdout.write(piece);
  const [failure] = proof.failures;
  const message = proof.error
    ? `${proof.error.code}: ${proof.error.message}`
    : failure && `${failure.property}: ${failure.message}`;
  if (message !== undefined) await io.stderr.write(`sluice: ${oneLine(proof.file)}: ${oneLine(message)}\n`);
}
