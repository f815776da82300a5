// The chunk shape lives with the chat accumulator, which stands below the protocols.
export * from '../../accumulate/chat-wire.ts';
