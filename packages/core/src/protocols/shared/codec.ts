// Everything a codec needs, under one name.

export { CodecError } from '../../canonical/errors.ts';
export type {
  Asked,
  Codec,
  CodecContext,
  Framing,
  Glance,
  HeaderBag,
  PassedTarget,
  Policy,
  Provider,
  Routing,
  Target,
  WireCodec,
  WireReply,
  WireRequest,
} from './protocol.ts';
export { approximate, drop, incompatible, invalid, isStrict, missing, refuse, repair, rulesTelling } from './report.ts';
