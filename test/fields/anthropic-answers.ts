import { citations } from './anthropic-blocks.ts';
import { carried, derived, dropped, extension, mapped } from './decision.ts';

const RESULT = 'content[].content[].raw';
const POSITION = 'blocks are numbered from 0 in the order they open';

const usage = {
  'usage.input_tokens': mapped('usage.input_tokens'),
  'usage.output_tokens': mapped('usage.output_tokens'),
  'usage.cache_creation_input_tokens': mapped('usage.cache_creation_tokens'),
  'usage.cache_read_input_tokens': mapped('usage.cache_read_tokens'),
  'usage.output_tokens_details.thinking_tokens': mapped('usage.reasoning_tokens'),
  'usage.cache_creation.ephemeral_1h_input_tokens': mapped('usage.details.cache_creation_1h'),
  'usage.cache_creation.ephemeral_5m_input_tokens': mapped('usage.details.cache_creation_5m'),
  'usage.server_tool_use.web_fetch_requests': mapped('usage.details.web_fetch_requests'),
  'usage.server_tool_use.web_search_requests': mapped('usage.details.web_search_requests'),
  'usage.service_tier': mapped('service_tier'),
  'usage.inference_geo': extension,
  'usage.speed': extension,
};

export const response = {
  id: mapped('id'),
  model: mapped('model'),
  'container.**': extension,
  'diagnostics.**': extension,
  stop_reason: mapped('stop_reason'),
  stop_sequence: mapped('stop_sequence'),
  'stop_details.category': mapped('stop_details.category'),
  'stop_details.explanation': mapped('stop_details.explanation'),
  'content[text].text': mapped('content[].text'),
  ...citations('content[text].citations', 'content[].citations'),
  'content[text].citations[*].file_id': mapped('content[].citations[].file_id'),
  'content[thinking].thinking': mapped('content[].thinking'),
  'content[thinking].signature': mapped('content[].signature.value'),
  'content[redacted_thinking].data': mapped('content[].signature.value'),
  'content[*tool_use].id': mapped('content[].id'),
  'content[*tool_use].name': mapped('content[].name'),
  'content[*tool_use].input': mapped('content[].input'),
  'content[tool_use].toolset_name': extension,
  'content[*].caller.**': extension,
  'content[*_tool_result].tool_use_id': mapped('content[].tool_use_id'),
  'content[*_tool_result].content.**': carried(RESULT),
  'content[container_upload].file_id': carried('content[].raw'),
  ...usage,
};

export const stream = {
  '(message_start).message': mapped('id'),
  '(message_delta).delta.stop_reason': mapped('stop_reason'),
  '(message_delta).delta.stop_sequence': mapped('stop_sequence'),
  '(message_delta).delta.stop_details': mapped('stop_details.category'),
  '(message_delta).delta.container': extension,
  '(message_delta).usage.input_tokens': mapped('usage.input_tokens'),
  '(message_delta).usage.output_tokens': mapped('usage.output_tokens'),
  '(message_delta).usage.cache_creation_input_tokens': mapped('usage.cache_creation_tokens'),
  '(message_delta).usage.cache_read_input_tokens': mapped('usage.cache_read_tokens'),
  '(message_delta).usage.output_tokens_details': mapped('usage.reasoning_tokens'),
  '(message_delta).usage.server_tool_use': mapped('usage.details.web_search_requests'),
  '(content_block_start).content_block': mapped('content[].id'),
  '(content_block_delta).delta(text_delta).text': mapped('content[].text'),
  '(content_block_delta).delta(input_json_delta).partial_json': mapped('content[].input'),
  '(content_block_delta).delta(citations_delta).citation': mapped('content[].citations'),
  '(content_block_delta).delta(thinking_delta).thinking': mapped('content[].thinking'),
  '(content_block_delta).delta(signature_delta).signature': mapped('content[].signature.value'),
  '(*).index': derived(POSITION),
};

export const betaResponse = {
  'content[mcp_tool_use].id': mapped('content[].id'),
  'content[mcp_tool_use].name': mapped('content[].name'),
  'content[mcp_tool_use].input': mapped('content[].input'),
  'content[mcp_tool_use].server_name': extension,
  'content[mcp_tool_result].content': mapped('content[].content'),
  'content[mcp_tool_result].content[].text': mapped('content[].content[].text'),
  'content[mcp_tool_result].content[].citations.**': extension,
  'content[mcp_tool_result].is_error': mapped('content[].is_error'),
  'content[*_tool_result].tool_use_id': mapped('content[].tool_use_id'),
  'content[advisor_tool_result].content.**': carried(RESULT),
  'content[compaction].**': carried('content[].raw'),
  'content[fallback].**': carried('content[].raw'),
  'content[mcp_tool_listing].**': carried('content[].raw'),
  'context_management.**': extension,
  'input_transformations.**': extension,
  'stop_details.*': extension,
  'usage.fallback_credit.**': extension,
  'usage.iterations.**': extension,
  // Tokens of a compaction stand outside the totals.
  'usage.iterations[compaction].*input_tokens': mapped('usage.input_tokens'),
  'usage.iterations[compaction].output_tokens': mapped('usage.output_tokens'),
};

export const betaStream = {
  '(message_delta).context_management': extension,
  '(message_delta).input_transformations': extension,
  '(message_delta).usage.fallback_credit': extension,
  '(message_delta).usage.iterations': extension,
  '(content_block_delta).delta(thinking_delta).estimated_tokens': dropped(
    'an estimate while it goes on; the usage at the end counts',
  ),
  '(content_block_delta).delta(compaction_delta).content': carried('content[].raw', {
    as: '(content_block_start).content_block.content',
  }),
  '(content_block_delta).delta(compaction_delta).encrypted_content': carried('content[].raw', {
    as: '(content_block_start).content_block.encrypted_content',
  }),
};
