import { join } from 'node:path';
import { findProtocol, PROTOCOLS, type Protocol } from '@sluice/core';
import { type Body, buildCase, type Proven, proveBody, shrink } from '@sluice/lab/prove';
import { oneLine } from '@sluice/lab/text';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { type Command, createUnknownProtocolError, defineCommand, listProtocols } from '../command.ts';
import { type FoundFile, findFiles } from '../inputs.ts';
import { type FileFailure, type FileProof, readProveInput, showProof, showSummary } from '../prove.ts';

const OPTIONS = {
  protocol: {
    type: 'string',
    value: 'P',
    summary: `the protocol of the inputs (${listProtocols()}); told from the bytes when left out`,
  },
  json: { type: 'boolean', summary: 'one JSON object a line and input, on stdout; everything else on stderr' },
  out: {
    type: 'string',
    value: 'DIR',
    summary: 'make what fails as small as it gets, and write it to DIR as a case: the stream, and what it should be read as',
  },
} as const;

/** `sluice prove`: checks that recordings are read and converted correctly however they are cut. */
export const prove: Command = defineCommand({
  summary: 'shows that your own recordings are read and converted right, whatever is done to them',
  usage: 'prove [--protocol P] [--json] [--out DIR] FILE|DIR…',
  about:
    'Takes recorded answers (streams and whole JSON bodies) and checks what has to hold for each of them: it is read the same in two pieces cut anywhere, byte by byte and in pieces of any size; written again in its own protocol it says the same; converted to each of the other protocols and back it still says what every protocol can say; everything written on the way keeps the grammar of its protocol; and the work grows with the length of the stream, not faster. Of a DIR every file is taken, and those that are no answer are skipped. The exit code is 1 when a property does not hold or a FILE cannot be read.',
  options: OPTIONS,
  examples: [
    { line: 'sluice prove answer.sse', what: 'is this recording read and converted right?' },
    { line: 'sluice prove recordings/', what: 'all of them' },
    { line: 'sluice prove --out cases recordings/', what: 'the smallest stream that shows each failure, for a bug report' },
    { line: 'sluice prove --json *.sse | jq -c .failures[]', what: 'for a program' },
  ],
  run: async ({ options, words }, io) => {
    const job: Job = { protocols: chooseProtocols(options.protocol), isJson: options.json, out: options.out };
    const proofs: FileProof[] = [];
    let skipped = 0;
    for (const found of await findFiles(words, io)) {
      const proof = await proveFile(found.file, job, io);
      if (isSkipped(proof, found)) skipped++;
      else {
        proofs.push(proof);
        await printProof(proof, job, io);
      }
    }
    if (!job.isJson) await io.stdout.write(showSummary(proofs, skipped, reportStyle(io)));
    return proofs.some(hasFailed) || proofs.length === 0 ? 1 : 0;
  },
});

interface Job {
  protocols: readonly Protocol[];
  isJson: boolean;
  out: string | undefined;
}

const reportStyle = ({ stdout, env }: CliIo) => ({ colors: chooseColors(stdout, env), columns: stdout.columns });

const hasFailed = ({ error, failures }: FileProof): boolean => error !== null || failures.length > 0;

/** Folders of recordings also hold requests and other files; these are skipped unless they are named. */
const isSkipped = ({ error }: FileProof, { isFromFolder }: FoundFile): boolean =>
  isFromFolder && (error?.code === 'not_a_stream' || error?.code === 'empty_stream');

function chooseProtocols(name: string | undefined): readonly Protocol[] {
  if (name === undefined) return Object.values(PROTOCOLS);
  const found = findProtocol(name);
  if (found) return [found];
  throw createUnknownProtocolError(name);
}

async function proveFile(file: string, job: Job, io: CliIo): Promise<FileProof> {
  const input = await readProveInput(file, job.protocols, io);
  const proof: FileProof = { file, protocol: null, bytes: 0, properties: [], failures: [], notes: {}, error: null };
  if ('error' in input) return { ...proof, error: input.error };
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
  return { ...proof, protocol: input.protocol, bytes: input.bytes.length };
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
