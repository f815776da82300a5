/** What rows of several tables of commands share. */

import type { ProtocolId } from '@sluice/core';
import type { Command, Group, OptionTable } from '../command.ts';

/** For the rows of one group: infers the options of a row, and checks that the module of the command accepts them. */
export const defineIn =
  (group: Group) =>
  <const O extends OptionTable>(row: Omit<Command<O>, 'group'>): Command<O> => ({ ...row, group });

/** Ids of the protocols. The core has them too, but loads 150 modules. */
export const PROTOCOL_IDS = Object.keys({
  'openai-chat': true,
  'anthropic-messages': true,
  'openai-responses': true,
  gemini: true,
} satisfies Record<ProtocolId, true>);

/** The same for sentences. */
export const PROTOCOL_LIST = PROTOCOL_IDS.join(', ');

/** For commands that print records. */
export const JSON_OPTION = {
  type: 'boolean',
  summary: 'print one JSON object per line on stdout; everything else goes to stderr',
} as const;

/** For commands that belong to a gateway, which may not be named after this folder. */
export const OWN_CONFIG_OPTION = {
  type: 'string',
  value: 'FILE',
  summary: 'configuration of the gateway; by default sluice.yaml in this folder',
  values: 'files',
} as const;

/** For commands that work without a file, too. */
export const CONFIG_OPTION = {
  type: 'string',
  value: 'FILE',
  summary: 'configuration file; by default sluice.yaml in this folder, or else the environment alone',
  values: 'files',
} as const;

/** For commands that use a running gateway. */
export const URL_OPTION = {
  type: 'string',
  value: 'URL',
  summary: 'address of the gateway; by default SLUICE_URL, that of the configuration or data folder, or http://127.0.0.1:4141',
} as const;
