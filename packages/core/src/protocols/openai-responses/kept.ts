import { type Keeper, keeper } from '../shared/kept.ts';

export const PROTOCOL = 'openai-responses';

const kept: Keeper = keeper(PROTOCOL);

/** What the decoders kept of a node under wire names. */
export const fieldsOf: Keeper['fieldsOf'] = kept.fieldsOf;
/** As a part of a node: nothing when there is nothing to keep. */
export const keep: Keeper['keep'] = kept.keep;
