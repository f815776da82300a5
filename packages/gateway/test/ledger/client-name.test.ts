import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findClientName } from '../../src/exchange/record.ts';
import { parseFilter } from '../../src/store/index.ts';
import { modelOf } from '../gateway/pairs.ts';
import { ask } from '../gateway/start.ts';
import { Rig } from './rig.ts';

describe('the name of a client', () => {
  test.each([
    ['claude-cli/2.1.197 (external, sdk-cli)', 'claude-cli'],
    ['codex_exec/0.166.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.166.0)', 'codex_exec'],
    ['GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)', 'GeminiCLI-tui'],
    ['opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14', 'opencode'],
    ['ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13', 'ai-sdk/openai-compatible'],
    ['OpenAI/JS 6.49.0', 'OpenAI/JS'],
    ['AsyncAnthropic/Python 0.60.0', 'AsyncAnthropic/Python'],
    ['google-genai-sdk/2.32.0 gl-node/v20.20.2', 'google-genai-sdk'],
    ['tool/v2', 'tool'],
    ['node', 'node'],
    ['My Agent', 'My'],
    ['curl(1)', 'curl'],
    ['(unknown)', undefined],
    ['', undefined],
    [null, undefined],
    ['x'.repeat(101), undefined],
  ])('%j: %j', (userAgent, name) => expect(findClientName(userAgent)).toBe(name));

  describe('of a request', () => {
    let rig: Rig;
    beforeAll(async () => {
      rig = await Rig.start();
    });
    afterAll(() => rig.stop());

    test('is in its row, and a filter finds it', async () => {
      const pair = { client: 'openai-chat', upstream: 'openai-chat', isPassing: true, name: 'chat' } as const;
      rig.first.play(rig.good(pair, false));
      const headers = { 'user-agent': 'claude-cli/2.1.197 (external, cli)' };
      await ask(rig.gateway.url, { client: 'openai-chat', model: modelOf(pair), stream: false, headers });
      const { exchange } = await rig.takeRow();
      expect([exchange.client_name, exchange.user_agent]).toEqual(['claude-cli', 'claude-cli/2.1.197 (external, cli)']);
      const { exchanges } = await rig.store.list({ filter: parseFilter('client:claude-cli', Date.now()).filter });
      expect(exchanges.map(({ id }) => id)).toEqual([exchange.id]);
    });
  });
});
