/** Suites that read the type declarations of the newest SDKs: they run with `npm run test:sdk-next` only. */
export const NEXT_ONLY: readonly string[] = [
  'packages/gateway/test/gateway/declared-requests.test.ts',
  'test/fields.test.ts',
  'test/published.test.ts',
];

/** Suites with tables of SDKs: `npm run test:sdk-next` repeats them with the majors that ask for a newer node than Sluice. */
export const REPEATED: readonly string[] = [
  'packages/core/test/openai-chat/embeddings.test.ts',
  'packages/core/test/openai-chat/errors.test.ts',
  'packages/core/test/openai-chat/models.test.ts',
  'packages/core/test/openai-chat/response.test.ts',
  'packages/core/test/openai-chat/sdk.test.ts',
  'packages/core/test/openai-chat/stream-encode-foreign.test.ts',
  'packages/core/test/openai-chat/stream-encode.test.ts',
  'packages/core/test/openai-responses/built-in-calls.test.ts',
  'packages/core/test/openai-responses/interfaces.test.ts',
  'packages/core/test/openai-responses/loops.test.ts',
  'packages/core/test/openai-responses/sdk.test.ts',
  'packages/core/test/openai-responses/stream-encode.test.ts',
  'packages/core/test/openai-responses/stream-hostile.test.ts',
  'packages/gateway/test/gateway/known-endpoints.test.ts',
  'packages/gateway/test/gateway/object-fields.test.ts',
  'packages/gateway/test/gateway/upstream-bytes.test.ts',
  'test/clients/base-urls.test.ts',
  'test/clients/replay.test.ts',
  'test/clients/through.test.ts',
  'test/doctor/breakage.test.ts',
  'test/doctor/vendors.test.ts',
  'test/prove/sdk.test.ts',
  'test/repair-sdks.test.ts',
  'test/sdk/differential.test.ts',
  'test/sdk/sources.test.ts',
];
