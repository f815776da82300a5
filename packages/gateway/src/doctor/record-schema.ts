/** The schema of the lines of `sluice doctor --json`. Loaded by tests and by the script that writes the file, not by the command. */

import { z } from 'zod';
import { formatSchema } from '../config/schema.ts';
import { RECORD_VERSION, SEVERITIES } from './checkup.ts';

const finding = z
  .looseObject({
    rule: z.string().describe('Id of the rule; "sluice doctor rules RULE" explains it. Ids do not change.'),
    severity: z.enum(SEVERITIES).describe('error: breaks official clients; warning: breaks some clients; info: unusual.'),
    title: z.string().describe('The rule in a few words.'),
    message: z.string().describe('What was found; equal to the title when there is nothing to add.'),
    offset: z.int().min(0).describe('Byte in the body where it was found first.'),
    count: z.int().min(1).describe('How often it was found.'),
    excerpt: z.string().describe('The body at the offset.'),
    remedy: z.string().describe('What Sluice does about it.'),
    breaks: z
      .array(z.looseObject({ client: z.string(), effect: z.string() }))
      .describe('Clients that are known to fail on it, with the effect.'),
  })
  .describe('A violation of the standard of the protocol.');

const traits = z.looseObject({
  reasoning_fields: z.array(z.string()).describe('Chat: the fields that contained reasoning.'),
  think_tags: z.boolean().describe('The text contains reasoning between tags.'),
  call_ids: z.boolean().nullable().describe('Gemini: whether calls have ids; null without calls.'),
  comments: z.int().min(0).describe('Comment lines in the stream.'),
});

const error = z.looseObject({
  code: z.union([z.string(), z.int()]).describe('The code of the wire or of the system.'),
  message: z.string(),
  canonical: z.string().describe('The error code of Sluice.'),
});

const examination = {
  protocol: z.string().nullable().describe('Id of the protocol; null when it was not recognised.'),
  model: z.string().nullable().describe('Name of the model.'),
  complete: z.boolean().describe('Whether the response has its end.'),
  bytes: z.int().min(0).nullable().describe('Length of the body; null when nothing was read.'),
  score: z.int().min(0).max(100).nullable().describe('null when it is not known.'),
  findings: z.array(finding).describe('The most severe first, then by offset.'),
  traits: traits.nullable().describe('How the server frames its stream.'),
  error: error.nullable(),
};

const version = z.literal(RECORD_VERSION).describe('Version of this format. Fields may be added without a new version.');

/** A line of `sluice doctor --json`: of a file, or of a probe. */
export const doctorRecord = z.union([
  z.looseObject({ version, file: z.string().describe('The argument, or the path below it.'), ...examination }),
  z.looseObject({
    version,
    probe: z.string().describe('Name of the probe.'),
    title: z.string().describe('What it requests.'),
    status: z.int().nullable().describe('HTTP status; null without a response.'),
    outcome: z
      .enum(['shown', 'not-shown', 'refused', 'failed'])
      .describe('shown: the response has what was requested; not-shown: it does not; refused: an error; failed: no response.'),
    note: z.string().describe('The reason, or "".'),
    ...examination,
  }),
]);

/** The content of `doctor.schema.json`. */
export function doctorSchemaFile(): string {
  const { $schema, ...schema } = z.toJSONSchema(doctorRecord, { io: 'input' });
  const head = { $schema, $id: 'https://unpkg.com/sluice/doctor.schema.json', title: 'A line of "sluice doctor --json"' };
  return formatSchema({ ...head, ...schema });
}
