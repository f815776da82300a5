import type { ProtocolId } from '@sluice/core';

/** One protocol of one vendor. A vendor with two protocols has two rows that share a key. */
export interface ProviderRow {
  readonly title: string;
  readonly protocol: ProtocolId;
  /** Absent when every customer has their own host. */
  readonly base_url?: string;
  /** Variables that hold the key; the first one set wins. */
  readonly key_env: readonly string[];
  /** Variables that hold a token, which is sent as `Authorization: Bearer` even if keys are not. */
  readonly token_env?: readonly string[];
  /** Variables that hold the address. */
  readonly base_env?: readonly string[];
  /**
   * For vendors with one host per customer: the variable with its name, and the domains it belongs to (first: default).
   */
  readonly resource?: { readonly env: string; readonly domains: readonly [string, ...string[]] };
  readonly version_env?: readonly string[];
  /** The vendor that defines the protocol: its bytes are passed on unchanged. Streams of others are repaired. */
  readonly official?: true;
  /** Runs on the operator's machine without a key; used when the configuration or `base_env` names it. */
  readonly local?: true;
  /** How the key is sent, when it differs from the protocol's default. */
  readonly auth?: 'bearer' | 'api-key';
  /** Path that is added to a bare host. Default: the version path of the protocol. */
  readonly root?: string;
  /** Id of the vendor's first row, under which core knows its profile. */
  readonly vendor?: string;
}
