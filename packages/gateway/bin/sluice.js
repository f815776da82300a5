#!/usr/bin/env node
// Committed, so that npm can link the command before the first build.
import { main } from '../dist/cli/main.js';

process.exitCode = await main(process.argv.slice(2));
