// A background response with the OpenAI SDK: its stream is left in the middle and resumed after every event.
import { isDeepStrictEqual } from 'node:util';
import OpenAI from 'openai';

const { BASE_URL, MODEL, TURNS } = process.env;
const client = new OpenAI({ apiKey: 'any', baseURL: `${BASE_URL}/v1`, maxRetries: 0 });

let previous;
for (const input of JSON.parse(TURNS)) {
  const fields = { model: MODEL, input, background: true, ...(previous && { previous_response_id: previous }) };
  const begun = await client.responses.create({ ...fields, stream: true });
  const before = [];
  for await (const event of begun) {
    before.push(event);
    // Leaving the loop closes the connection.
    if (before.length === 3) break;
  }
  const id = before[0].response.id;
  const rest = await readAll({ response_id: id, starting_after: before.at(-1).sequence_number });
  const all = [...before, ...rest.events];
  for (const [index, { sequence_number: number }] of all.entries()) {
    if (number !== index) throw new Error(`event ${index} has the number ${number}`);
    const { events, final } = await readAll({ response_id: id, starting_after: number });
    if (!isDeepStrictEqual(events, all.slice(index + 1))) throw new Error(`the events after ${index} differ`);
    if (final.output_text !== rest.final.output_text) throw new Error(`the text after ${index} differs`);
  }
  if (all.at(-1).type !== 'response.completed') throw new Error(`the last event is ${all.at(-1).type}`);
  console.log(rest.final.output_text);
  previous = id;
}

async function readAll(options) {
  const stream = client.responses.stream(options);
  const events = [];
  // The helper adds the text so far to some events; it is no part of what was sent.
  for await (const { snapshot: _, ...event } of stream) events.push(event);
  return { events, final: await stream.finalResponse() };
}
