import type { ProtocolId } from '@sluice/core';

/** One way to reach one vendor. A vendor that speaks two protocols has two rows, and one key opens both. */
export interface ProviderRow {
  readonly title: string;
  readonly protocol: ProtocolId;
  /** Absent where every customer has a host of their own. */
  readonly base_url?: string;
  /** Where its key is looked for; the first variable that is set wins. */
  readonly key_env: readonly string[];
  /** The same for tokens that go out as `Authorization: Bearer`, where keys do not. */
  readonly token_env?: readonly string[];
  /** Where its address is customarily kept. */
  readonly base_env?: readonly string[];
  /** Where every customer has a host of their own: its name is kept in `env`, and it stands below one of the domains; the first by default. */
  readonly resource?: { readonly env: string; readonly domains: readonly [string, ...string[]] };
  readonly version_env?: readonly string[];
  /** The vendor of the protocol itself: what it sends is right by definition, so its bytes go through untouched. Others are repaired. */
  readonly official?: true;
  /** Runs on a machine of the operator's and needs no key: it is there when the configuration or `base_env` says so. */
  readonly local?: true;
  /** How the key is sent, where that is not the protocol's own way. */
  readonly auth?: 'bearer' | 'api-key';
  /** What follows a base URL that is a mere host. Default: the version of the protocol. */
  readonly root?: string;
  /** The first row of the vendor: its quirks are known under that name. */
  readonly vendor?: string;
}
