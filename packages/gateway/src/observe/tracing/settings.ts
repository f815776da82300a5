/** The settings of tracing, from the variables that OpenTelemetry defines. */

/** What traces are exported with. */
export interface TraceSettings {
  /** Where spans are sent. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of this process, with `service.name`. */
  readonly resource: Readonly<Record<string, string>>;
  /** Whether the decision of the caller is kept, and which share of the other traces is sampled. */
  readonly sampler: { readonly followsParent: boolean; readonly ratio: number };
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly maxBatch: number;
  readonly delayMs: number;
  /** Whether spans contain what clients send. */
  readonly hasContent: boolean;
}

/** Node runs a longer timer at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

type Env = Readonly<Record<string, string | undefined>>;

/** Undefined when tracing is not configured. `warn`: about settings that cannot be followed. */
export function readTraceSettings(env: Env, warn: (message: string) => void): TraceSettings | undefined {
  const read = (name: string): string | undefined => env[name]?.trim() || undefined;
  const exporter = read('OTEL_TRACES_EXPORTER');
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const shared = read('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporter === 'none') return undefined;
  if (!own && !shared && exporter !== 'otlp') return undefined;
  const url = own ?? `${(shared ?? 'http://localhost:4318').replace(/\/+$/, '')}/v1/traces`;
  const protocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL');
  const fault = findFault(url, protocol, exporter);
  if (fault !== undefined) {
    warn(`${fault}; traces are not exported`);
    return undefined;
  }
  const number = (name: string, preset: number): number => {
    const value = Number(read(name) ?? preset);
    return Number.isFinite(value) && value > 0 ? Math.min(value, MAX_TIMER_MS) : preset;
  };
  const resource = readList(read('OTEL_RESOURCE_ATTRIBUTES'));
  return {
    url,
    headers: { ...readList(read('OTEL_EXPORTER_OTLP_HEADERS')), ...readList(read('OTEL_EXPORTER_OTLP_TRACES_HEADERS')) },
    resource: { ...resource, 'service.name': read('OTEL_SERVICE_NAME') ?? resource['service.name'] ?? 'sluice' },
    sampler: readSampler(read('OTEL_TRACES_SAMPLER'), read('OTEL_TRACES_SAMPLER_ARG'), warn),
    timeoutMs: number('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', number('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000)),
    maxQueued: number('OTEL_BSP_MAX_QUEUE_SIZE', 2048),
    maxBatch: number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
    delayMs: number('OTEL_BSP_SCHEDULE_DELAY', 5000),
    hasContent: read('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT')?.toLowerCase() === 'true',
  };
}

/** Values may be secrets, so messages do not have them. */
function findFault(url: string, protocol: string | undefined, exporter: string | undefined): string | undefined {
  if (!URL.canParse(url) || !/^https?:/.test(url)) return 'the OTLP endpoint must be a URL with http or https';
  if (protocol?.startsWith('grpc')) return 'OTEL_EXPORTER_OTLP_PROTOCOL must be http/json or http/protobuf (JSON is sent)';
  if (exporter !== undefined && exporter !== 'otlp') return 'OTEL_TRACES_EXPORTER must be otlp or none';
  return undefined;
}

/** `a=b,c=d`, with percent-encoded values. */
function readList(text = ''): Record<string, string> {
  const list: Record<string, string> = {};
  for (const part of text.split(',')) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    if (at > 0 && name !== '__proto__') list[name] = decode(part.slice(at + 1).trim());
  }
  return list;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readSampler(
  name = 'parentbased_always_on',
  arg: string | undefined,
  warn: (message: string) => void,
): TraceSettings['sampler'] {
  const followsParent = name.startsWith('parentbased_');
  const ratio = Number(arg ?? 1);
  switch (name.replace('parentbased_', '')) {
    case 'always_on':
      return { followsParent, ratio: 1 };
    case 'always_off':
      return { followsParent, ratio: 0 };
    case 'traceidratio':
      if (ratio >= 0 && ratio <= 1) return { followsParent, ratio };
  }
  warn('OTEL_TRACES_SAMPLER or its argument is not known; all traces are sampled');
  return { followsParent: true, ratio: 1 };
}
