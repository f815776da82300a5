// Writes packages/gateway/sluice.schema.json from the schema in the code; a test holds that it was run.
import { writeFileSync } from 'node:fs';
import { schemaFile } from '../packages/gateway/out/config/schema.js';

writeFileSync(new URL('../packages/gateway/sluice.schema.json', import.meta.url), schemaFile());
