import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';

function deltaOf(delta: BlockDelta): string {
  switch (delta.type) {
    case 'text_delta':
      return delta.refusal ? `refuse ${delta.text}` : `text ${delta.text}`;
    case 'input_json_delta':
      return `json ${delta.partial_json}`;
    case 'input_text_delta':
      return `input ${delta.text}`;
    case 'thinking_delta':
      return `think${delta.summary_index ?? ''} ${JSON.stringify(delta.thinking)}`;
    case 'signature_delta':
      return `sign ${delta.signature.value} of ${delta.signature.item_id}`;
    case 'citations_delta':
      return `cite ${delta.citation.url ?? delta.citation.file_id}`;
    default:
      return `${delta.type} ${JSON.stringify(delta)}`;
  }
}

/** A canonical event in one readable line. */
export function brief(event: CanonicalStreamEvent): string {
  switch (event.type) {
    case 'message_start':
      return `message ${event.message.id}`;
    case 'content_block_start': {
      const { content_block: block, index } = event;
      if (block.type === 'tool_use') return `${index} call ${block.id} ${block.name}${block.kind ? ` (${block.kind})` : ''}`;
      if (block.type === 'thinking') return `${index} thinking${block.variant ? ` (${block.variant})` : ''}`;
      if (block.type === 'opaque') return `${index} opaque ${JSON.stringify(block.raw)}`;
      return `${index} ${block.type}${block.type === 'text' && block.refusal ? ' (refusal)' : ''}`;
    }
    case 'content_block_delta':
      return `${event.index} ${deltaOf(event.delta)}`;
    case 'content_block_stop': {
      const final = event.content_block;
      return `${event.index} stop${final?.type === 'opaque' ? ` ${JSON.stringify(final.raw)}` : ''}${final?.type === 'tool_use' ? ` ${final.status}` : ''}`;
    }
    case 'message_delta':
      return [
        `end ${event.delta.stop_reason}`,
        ...(event.late_blocks ?? []).map(
          ({ index, content_block: block }) => `late ${index} ${JSON.stringify(block.type === 'opaque' ? block.raw : block)}`,
        ),
      ].join(', ');
    case 'error':
      return `error ${event.error.code} ${event.error.upstream?.code ?? event.error.details?.['code'] ?? ''}`.trim();
    default:
      return event.type;
  }
}
