import { KeyError } from '../keys/key-book.ts';
import { KeySettingError } from '../keys/settings.ts';
import { StoreError, type StoreErrorCode } from '../store/index.ts';

/** An error response of the admin API, as RFC 9457 describes it. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The query parameters or fields that are wrong. */
  readonly errors: readonly FieldError[];

  constructor(
    status: number,
    detail: string,
    { headers = {}, errors = [] }: { headers?: Record<string, string>; errors?: readonly FieldError[] } = {},
  ) {
    super(detail);
    this.status = status;
    this.headers = headers;
    this.errors = errors;
  }

  /** The body, without anything that could be secret: details never quote credentials. */
  toBody(requestId: string): object {
    const { status, message, errors } = this;
    const title = TITLES[status] ?? 'Error';
    return { type: 'about:blank', title, status, detail: message, request_id: requestId, ...(errors.length > 0 && { errors }) };
  }
}

/** What is wrong with one query parameter or field of a body. */
export interface FieldError {
  readonly field: string;
  readonly detail: string;
  /** Where the wrong part is in the value, for filters. */
  readonly start?: number;
  readonly end?: number;
}

/** The content type of a problem. */
export const PROBLEM_TYPE = 'application/problem+json';

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

const STORE_STATUS = {
  query: 400,
  not_writable: 503,
  owned: 503,
  damaged: 503,
  outdated: 503,
  full: 503,
  closed: 503,
  rejected: 500,
  unavailable: 503,
  exists: 409,
  conflict: 409,
} as const satisfies Record<StoreErrorCode, number>;

const KEY_STATUS = { unknown: 404, exists: 409, revoked: 409, full: 409, pepper: 503 } as const satisfies Record<
  KeyError['code'],
  number
>;

/** The problem for any error; undefined for a bug. */
export function toProblem(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  if (error instanceof KeyError) return new Problem(KEY_STATUS[error.code], error.message);
  if (error instanceof KeySettingError) {
    const { setting: field, message: detail } = error;
    return new Problem(400, `${field}: ${detail}`, { errors: [{ field, detail }] });
  }
  return error instanceof StoreError ? new Problem(STORE_STATUS[error.code], error.message) : undefined;
}
