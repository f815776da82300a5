import { Captures } from '../../src/capture/captures.ts';
import { loadConfig } from '../../src/config/load.ts';
import { Secret, SecretRegistry } from '../../src/config/secrets.ts';
import type { Services } from '../../src/exchange/types.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { type Started, type StartOptions, startGateway } from '../gateway/start.ts';

interface CapturingOptions extends StartOptions {
  /** Secrets of the process. */
  secrets?: readonly string[];
  /** The folder of captures; memory only without one. */
  folder?: string;
  wallClock?: () => number;
}

export interface Capturing extends Started {
  captures: Captures;
  failures: string[];
}

/** The gateway in this process, with captures by the section `capture` of its configuration. */
export async function startCapturing({ secrets = [], folder, wallClock, ...options }: CapturingOptions): Promise<Capturing> {
  const failures: string[] = [];
  const { options: read } = loadConfig('sluice.json', JSON.stringify(options.config), options.env ?? {});
  const known = new SecretRegistry();
  for (const secret of secrets) known.add(new Secret(secret));
  const captures = await Captures.open({
    options: read.capture,
    limits: read.limits,
    folder: folder ?? null,
    secrets: known,
    clock: options.clock ?? REAL_CLOCK,
    onFailure: (reason) => void failures.push(reason),
    ...(wallClock && { wallClock }),
  });
  // Without a sealing: the key of capsules is in no capture, so conversions with one cannot be repeated.
  const change = (services: Services): Services => ({ ...services, observers: captures, sealing: undefined });
  const started = await startGateway({ ...options, services: change });
  const close = async (...waits: Parameters<Started['close']>): Promise<void> => {
    await started.close(...waits);
    await captures.close();
  };
  return { ...started, close, captures, failures };
}
