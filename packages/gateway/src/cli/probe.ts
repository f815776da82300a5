/** Finds out what listens at an address, before a key or a prompt is sent there. */

const PROBE_MS = 5000;

/** Why there is no gateway at an address, and what to do. */
export const MISSING_GATEWAY = {
  nothing: (url: string) => `no gateway responds at ${url}; start one with "sluice serve", or omit --url`,
  untrusted: (url: string) =>
    `the certificate of ${url} is not trusted; name the file of its authority in NODE_EXTRA_CA_CERTS, and use a host that the certificate names`,
  other: (url: string) => `the server at ${url} is not a Sluice gateway; check --url, or omit it`,
} as const;

/** Whether a gateway listens at the address, a server without a trusted certificate, another server, or nothing. */
export async function probeGateway(url: string): Promise<'gateway' | keyof typeof MISSING_GATEWAY> {
  try {
    const response = await fetch(`${url}/health/live`, { signal: AbortSignal.timeout(PROBE_MS), redirect: 'manual' });
    const isGateway = response.ok && response.headers.has('x-sluice-request-id') && (await response.text()).trim() === 'live';
    return isGateway ? 'gateway' : 'other';
  } catch (error) {
    return hasUntrustedCertificate(error) ? 'untrusted' : 'nothing';
  }
}

/** `fetch` has the reason as the cause of its error. */
function hasUntrustedCertificate(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && /CERT|SIGNATURE|ISSUER/.test(String(cause.code));
}
