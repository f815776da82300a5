/** What is done with a grown message: every conversion that reads it. */

const NAMES = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** A rejected message costs what it costs; anything but an error of the library's own is a defect. */
function settled(run, { CodecError }) {
  return (input) => {
    try {
      return run(input);
    } catch (error) {
      if (error instanceof CodecError) return undefined;
      throw error;
    }
  };
}

const frames = (payloads) =>
  new TextEncoder().encode(
    payloads.map((payload) => `${payload.type ? `event: ${payload.type}\n` : ''}data: ${JSON.stringify(payload)}\n\n`).join(''),
  );

const same = (input) => input;

const JOBS = {
  request: ({ convertRequest }, from, to, path) => [
    { name: to, wire: same, run: (body) => convertRequest(body, { from, to, path }) },
  ],
  response: ({ convertResponse, convertResponseToStream, CODECS }, from, to) => [
    { name: to, wire: same, run: (body) => convertResponse(body, { from, to }) },
    { name: `${to} stream`, wire: same, run: (body) => convertResponseToStream(body, { from: CODECS[from], to: CODECS[to] }) },
  ],
  stream: ({ createStreamConverter, convertStreamToResponse, CODECS }, from, to) => [
    {
      name: `${to} stream`,
      wire: frames,
      run: (bytes) => {
        const converter = createStreamConverter({ from, to });
        for (const _ of converter.push(bytes));
        for (const _ of converter.end());
      },
    },
    { name: to, wire: frames, run: (bytes) => convertStreamToResponse([bytes], { from: CODECS[from], to: CODECS[to] }) },
  ],
};

export function jobsOf({ protocol, kind, path, target }, library) {
  const targets = target === undefined ? NAMES : [NAMES[target % NAMES.length]];
  const jobs = targets.flatMap((to) => JOBS[kind](library, protocol, to, path));
  const { StreamAccumulator, READERS } = library;
  if (kind === 'stream')
    jobs.push({
      name: 'accumulate',
      wire: frames,
      run: (bytes) => {
        const accumulator = new StreamAccumulator({ protocol: READERS[protocol] });
        accumulator.push(bytes);
        return accumulator.finish();
      },
    });
  return jobs.map((job) => ({ ...job, run: settled(job.run, library) }));
}
