/** A captured exchange as a conversation: what the client sent and received, as sections that a person can read. */

import { type CanonicalRequest, CodecError } from '@sluice/core';
import { CODECS, decodeRequest, StreamAccumulator } from '@sluice/core/engine';
import { z } from 'zod';
import type { Capture } from '../capture/capture.ts';
import { type Section, viewBlock } from './sections.ts';

const text = z.string();

/** One block of a message. */
const SECTION: z.ZodType<Section> = z.strictObject({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  kind: z.enum(['text', 'thinking', 'tool_use', 'tool_result', 'media', 'other']),
  text: text.describe('Text, arguments or result; a description of media, whose bytes are in the tape.'),
  name: text.optional().describe('The tool.'),
  call_id: text.optional(),
  is_error: z.boolean().optional().describe('The tool failed.'),
});

/** The conversation of an exchange. */
export const CONVERSATION = z.strictObject({
  request: z.array(SECTION).describe('System instructions and messages, oldest first.'),
  response: z.array(SECTION),
  tools: z.array(z.strictObject({ name: text, description: text })),
  parameters: z.record(text, z.unknown()),
  stop_reason: text.nullable(),
  error: text.nullable().describe('The error that the client received.'),
  problems: z.array(text).describe('Why parts cannot be shown.'),
  is_truncated: z.boolean(),
  is_redacted: z.boolean(),
});

type Conversation = z.infer<typeof CONVERSATION>;

/** Reads the conversation of a capture. Bodies that cannot be read are problems, never errors. */
export async function readConversation(capture: Capture): Promise<Conversation> {
  const problems: string[] = [];
  const request = readRequest(capture, problems);
  const { sections, stop_reason, error } = await readResponse(capture, problems);
  return {
    request: request ? listRequest(request) : [],
    response: sections,
    tools: (request?.tools ?? []).map(({ name, description = '' }) => ({ name, description })),
    parameters: { ...request?.parameters },
    stop_reason,
    error: capture.error?.message ?? error,
    problems,
    is_truncated: capture.isTruncated,
    is_redacted: capture.isRedacted,
  };
}

function readRequest({ endpoint, protocol, request }: Capture, problems: string[]): CanonicalRequest | undefined {
  if (endpoint !== 'CHAT') {
    problems.push(`requests to ${endpoint.toLowerCase()} have no conversation; see the raw bodies`);
    return undefined;
  }
  try {
    const body: unknown = JSON.parse(Buffer.from(request.body).toString());
    return decodeRequest(body, { from: CODECS[protocol], path: request.path, headers: request.headers });
  } catch (error) {
    if (!(error instanceof CodecError || error instanceof SyntaxError)) throw error;
    problems.push(`the request cannot be read: ${error.message}`);
    return undefined;
  }
}

/** Bytes that are read before other requests are served: 64 kB take about a millisecond. */
const SLICE = 65_536;

async function readResponse(
  { endpoint, protocol, response }: Capture,
  problems: string[],
): Promise<{ sections: Section[]; stop_reason: string | null; error: string | null }> {
  const nothing = { sections: [], stop_reason: null, error: null };
  if (!response || endpoint !== 'CHAT' || response.status >= 400) return nothing;
  const accumulator = new StreamAccumulator({ protocol: CODECS[protocol] });
  try {
    for (let at = 0; at < response.body.length; at += SLICE) {
      accumulator.push(response.body.subarray(at, at + SLICE));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { message, error } = accumulator.finish();
    const sections = message.content.flatMap((block) => viewBlock(block, 'assistant'));
    return { sections, stop_reason: message.stop_reason, error: error?.message ?? null };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    problems.push(`the response cannot be read: ${error.message}`);
    return nothing;
  }
}

function listRequest({ system = [], messages }: CanonicalRequest): Section[] {
  return [
    ...system.map((block): Section => ({ role: 'system', kind: 'text', text: block.text })),
    ...messages.flatMap(({ role, content }) => content.flatMap((block) => viewBlock(block, role))),
  ];
}
