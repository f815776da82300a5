// Writes packages/gateway/*.schema.json from the schemas in the code; tests hold that it was run.
import { writeFileSync } from 'node:fs';
import { schemaFile } from '../packages/gateway/out/config/schema.js';
import { doctorSchemaFile } from '../packages/gateway/out/doctor/record-schema.js';

const write = (name, text) => writeFileSync(new URL(`../packages/gateway/${name}`, import.meta.url), text);

write('sluice.schema.json', schemaFile());
write('doctor.schema.json', doctorSchemaFile());
