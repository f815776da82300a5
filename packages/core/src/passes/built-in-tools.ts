import type { JsonSchema } from '../canonical/protocol.ts';

const text: JsonSchema = { type: 'string' };
const words = (...values: string[]): JsonSchema => ({ type: 'string', enum: values });
const texts: JsonSchema = { type: 'array', items: text };
const count: JsonSchema = { type: 'integer' };
const lines: JsonSchema = { type: 'array', items: count, description: 'First and last line.' };

const object = (properties: JsonSchema, ...required: string[]): JsonSchema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

export interface BuiltIn {
  description: string;
  schema: JsonSchema;
}

/**
 * Tools that a protocol knows by a type of their own, but that the client runs: elsewhere they are functions, and the calls that come back
 * are the same. By canonical type. (A computer is none of them: its screenshots need the protocol's own blocks.)
 */
export const BUILT_IN_TOOLS: ReadonlyMap<string, BuiltIn> = new Map([
  [
    'bash',
    {
      description: 'Run a command in a persistent bash session.',
      schema: object({ command: text, restart: { type: 'boolean', description: 'Start the session anew.' } }),
    },
  ],
  [
    'text_editor',
    {
      description: 'View, create and edit text files.',
      schema: object(
        {
          command: words('view', 'create', 'str_replace', 'insert'),
          path: text,
          file_text: text,
          old_str: text,
          new_str: text,
          insert_line: count,
          insert_text: text,
          view_range: lines,
        },
        'command',
        'path',
      ),
    },
  ],
  [
    'memory',
    {
      description: 'Keep notes in files below /memories.',
      schema: object(
        {
          command: words('view', 'create', 'str_replace', 'insert', 'delete', 'rename'),
          path: text,
          file_text: text,
          old_str: text,
          new_str: text,
          insert_line: count,
          insert_text: text,
          old_path: text,
          new_path: text,
          view_range: lines,
        },
        'command',
      ),
    },
  ],
  [
    'apply_patch',
    {
      description: 'Create, update or delete one file by a diff.',
      schema: object({ type: words('create_file', 'update_file', 'delete_file'), path: text, diff: text }, 'type', 'path'),
    },
  ],
  [
    'shell',
    {
      description: 'Run commands in a shell.',
      schema: object({ commands: texts, timeout_ms: count, max_output_length: count }, 'commands'),
    },
  ],
  [
    'local_shell',
    {
      description: 'Run a command on the machine of the user.',
      schema: object({ command: texts, working_directory: text, timeout_ms: count }, 'command'),
    },
  ],
]);
