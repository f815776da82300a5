// Hand-written conversion between any two of the four protocols, with plain objects and JSON.stringify of each event: what a typed converter would
// naturally do. For clean streams of text and of calls one after the other. A reader calls the writer directly: no event of a third format between them.
import { HandSseBytes } from './hand.mjs';

const J = JSON.stringify;

class ChatReader {
  constructor(writer) { this.writer = writer; this.isStarted = false; this.finish = 'stop'; this.input = 0; this.output = 0; }
  read(chunk) {
    if (!this.isStarted) { this.isStarted = true; this.writer.start(chunk.id, chunk.model); }
    if (chunk.usage) { this.input = chunk.usage.prompt_tokens; this.output = chunk.usage.completion_tokens; }
    const choice = chunk.choices[0];
    if (choice === undefined) return;
    const { delta } = choice;
    if (delta.content) this.writer.text(delta.content);
    const calls = delta.tool_calls;
    if (calls) for (let i = 0; i < calls.length; i++) {
      const call = calls[i];
      if (call.id) this.writer.call(call.id, call.function.name);
      if (call.function.arguments) this.writer.arguments(call.function.arguments);
    }
    if (choice.finish_reason) this.finish = choice.finish_reason === 'tool_calls' ? 'call' : choice.finish_reason;
  }
  end() { this.writer.end(this.finish, this.input, this.output); }
}

class AnthropicReader {
  constructor(writer) { this.writer = writer; this.finish = 'stop'; this.input = 0; this.output = 0; }
  read(event) {
    switch (event.type) {
      case 'content_block_delta': {
        const { delta } = event;
        if (delta.type === 'text_delta') this.writer.text(delta.text);
        else if (delta.type === 'input_json_delta' && delta.partial_json !== '') this.writer.arguments(delta.partial_json);
        break;
      }
      case 'content_block_start': if (event.content_block.type === 'tool_use') this.writer.call(event.content_block.id, event.content_block.name); break;
      case 'message_start': this.writer.start(event.message.id, event.message.model); this.input = event.message.usage.input_tokens; break;
      case 'message_delta':
        this.finish = event.delta.stop_reason === 'tool_use' ? 'call' : event.delta.stop_reason === 'max_tokens' ? 'length' : 'stop';
        this.input = event.usage.input_tokens ?? this.input; this.output = event.usage.output_tokens;
        break;
    }
  }
  end() { this.writer.end(this.finish, this.input, this.output); }
}

class ResponsesReader {
  constructor(writer) { this.writer = writer; this.finish = 'stop'; this.input = 0; this.output = 0; }
  read(event) {
    switch (event.type) {
      case 'response.output_text.delta': this.writer.text(event.delta); break;
      case 'response.function_call_arguments.delta': this.writer.arguments(event.delta); break;
      case 'response.output_item.added': if (event.item.type === 'function_call') { this.finish = 'call'; this.writer.call(event.item.call_id, event.item.name); } break;
      case 'response.created': this.writer.start(event.response.id, event.response.model); break;
      case 'response.incomplete': this.finish = 'length';
      // falls through
      case 'response.completed': this.input = event.response.usage.input_tokens; this.output = event.response.usage.output_tokens; break;
    }
  }
  end() { this.writer.end(this.finish, this.input, this.output); }
}

class GeminiReader {
  constructor(writer) { this.writer = writer; this.isStarted = false; this.calls = 0; this.finish = 'stop'; this.input = 0; this.output = 0; }
  read(chunk) {
    if (!this.isStarted) { this.isStarted = true; this.writer.start(chunk.responseId, chunk.modelVersion); }
    if (chunk.usageMetadata) { this.input = chunk.usageMetadata.promptTokenCount; this.output = chunk.usageMetadata.candidatesTokenCount; }
    const candidate = chunk.candidates[0];
    const parts = candidate.content.parts;
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i];
      if (part.text) this.writer.text(part.text);
      else if (part.functionCall) {
        this.writer.call(part.functionCall.id ?? `call_${this.calls}`, part.functionCall.name);
        this.writer.arguments(J(part.functionCall.args));
        this.calls++;
      }
    }
    if (candidate.finishReason) this.finish = candidate.finishReason === 'MAX_TOKENS' ? 'length' : this.calls > 0 ? 'call' : 'stop';
  }
  end() { this.writer.end(this.finish, this.input, this.output); }
}

class ChatWriter {
  constructor() { this.out = ''; this.calls = 0; }
  emit(delta, finish) { this.out += `data: ${J({ id: this.id, object: 'chat.completion.chunk', created: this.created, model: this.model, choices: [{ index: 0, delta, finish_reason: finish }], usage: null })}\n\n`; }
  start(id, model) { this.id = id; this.model = model; this.created = Math.floor(Date.now() / 1000); this.emit({ role: 'assistant', content: '' }, null); }
  text(content) { this.emit({ content }, null); }
  call(id, name) { this.emit({ tool_calls: [{ index: this.calls++, id, type: 'function', function: { name, arguments: '' } }] }, null); }
  arguments(text) { this.emit({ tool_calls: [{ index: this.calls - 1, function: { arguments: text } }] }, null); }
  end(finish, input, output) {
    this.emit({}, finish === 'call' ? 'tool_calls' : finish);
    this.out += `data: ${J({ id: this.id, object: 'chat.completion.chunk', created: this.created, model: this.model, choices: [], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } })}\n\ndata: [DONE]\n\n`;
  }
}

class AnthropicWriter {
  constructor() { this.out = ''; this.index = -1; this.isText = false; this.isOpen = false; }
  emit(event) { this.out += `event: ${event.type}\ndata: ${J(event)}\n\n`; }
  start(id, model) { this.emit({ type: 'message_start', message: { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 0, output_tokens: 0 } } }); }
  close() { if (this.isOpen) this.emit({ type: 'content_block_stop', index: this.index }); this.isOpen = false; }
  open(block) { this.close(); this.isOpen = true; this.isText = block.type === 'text'; this.emit({ type: 'content_block_start', index: ++this.index, content_block: block }); }
  text(text) { if (!this.isOpen || !this.isText) this.open({ type: 'text', text: '' }); this.emit({ type: 'content_block_delta', index: this.index, delta: { type: 'text_delta', text } }); }
  call(id, name) { this.open({ type: 'tool_use', id, name, input: {} }); }
  arguments(text) { this.emit({ type: 'content_block_delta', index: this.index, delta: { type: 'input_json_delta', partial_json: text } }); }
  end(finish, input, output) {
    this.close();
    const reason = finish === 'call' ? 'tool_use' : finish === 'length' ? 'max_tokens' : 'end_turn';
    this.emit({ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { input_tokens: input, output_tokens: output } });
    this.emit({ type: 'message_stop' });
  }
}

class ResponsesWriter {
  constructor() { this.out = ''; this.sequence = 0; this.items = []; this.item = null; this.part = null; }
  emit(event) { this.out += `event: ${event.type}\ndata: ${J(event)}\n\n`; }
  response(status, usage) { return { id: this.id, object: 'response', created_at: this.created, status, error: null, incomplete_details: null, model: this.model, output: this.items, usage }; }
  start(id, model) {
    this.id = id; this.model = model; this.created = Math.floor(Date.now() / 1000);
    this.emit({ type: 'response.created', sequence_number: this.sequence++, response: this.response('in_progress', null) });
    this.emit({ type: 'response.in_progress', sequence_number: this.sequence++, response: this.response('in_progress', null) });
  }
  open(item) { this.close(); this.item = item; this.emit({ type: 'response.output_item.added', sequence_number: this.sequence++, output_index: this.items.length, item }); }
  text(delta) {
    if (this.part === null) {
      this.open({ id: `msg_${this.id}_${this.items.length}`, type: 'message', status: 'in_progress', role: 'assistant', content: [] });
      this.part = { type: 'output_text', annotations: [], logprobs: [], text: '' };
      this.emit({ type: 'response.content_part.added', sequence_number: this.sequence++, item_id: this.item.id, output_index: this.items.length, content_index: 0, part: this.part });
    }
    this.part.text += delta;
    this.emit({ type: 'response.output_text.delta', sequence_number: this.sequence++, item_id: this.item.id, output_index: this.items.length, content_index: 0, delta, logprobs: [] });
  }
  call(id, name) { this.open({ id: `fc_${this.id}_${this.items.length}`, call_id: id, name, type: 'function_call', status: 'in_progress', arguments: '' }); }
  arguments(delta) {
    this.item.arguments += delta;
    this.emit({ type: 'response.function_call_arguments.delta', sequence_number: this.sequence++, item_id: this.item.id, output_index: this.items.length, delta });
  }
  close() {
    const { item, part } = this;
    if (item === null) return;
    const index = this.items.length;
    if (part === null) this.emit({ type: 'response.function_call_arguments.done', sequence_number: this.sequence++, item_id: item.id, output_index: index, name: item.name, arguments: item.arguments });
    else {
      this.emit({ type: 'response.output_text.done', sequence_number: this.sequence++, item_id: item.id, output_index: index, content_index: 0, text: part.text, logprobs: [] });
      this.emit({ type: 'response.content_part.done', sequence_number: this.sequence++, item_id: item.id, output_index: index, content_index: 0, part });
      item.content.push(part);
    }
    item.status = 'completed';
    this.emit({ type: 'response.output_item.done', sequence_number: this.sequence++, output_index: index, item });
    this.items.push(item); this.item = null; this.part = null;
  }
  end(finish, input, output) {
    this.close();
    const status = finish === 'length' ? 'incomplete' : 'completed';
    this.emit({ type: `response.${status}`, sequence_number: this.sequence++, response: this.response(status, { input_tokens: input, output_tokens: output, total_tokens: input + output }) });
  }
}

class GeminiWriter {
  constructor() { this.out = ''; this.name = null; }
  emit(part) { this.out += `data: ${J({ candidates: [{ content: { parts: [part], role: 'model' }, index: 0 }], modelVersion: this.model, responseId: this.id })}\n\n`; }
  start(id, model) { this.id = id; this.model = model; }
  text(text) { if (this.name !== null) this.close(); this.emit({ text }); }
  call(id, name) { if (this.name !== null) this.close(); this.callId = id; this.name = name; this.args = ''; }
  arguments(text) { this.args += text; }
  close() { this.emit({ functionCall: { id: this.callId, name: this.name, args: JSON.parse(this.args || '{}') } }); this.name = null; }
  end(finish, input, output) {
    if (this.name !== null) this.close();
    this.out += `data: ${J({ candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, finishReason: finish === 'length' ? 'MAX_TOKENS' : 'STOP', index: 0 }], usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output }, modelVersion: this.model, responseId: this.id })}\n\n`;
  }
}

const READERS = { 'openai-chat': ChatReader, 'anthropic-messages': AnthropicReader, 'openai-responses': ResponsesReader, gemini: GeminiReader };
const WRITERS = { 'openai-chat': ChatWriter, 'anthropic-messages': AnthropicWriter, 'openai-responses': ResponsesWriter, gemini: GeminiWriter };

/** A stream of pieces to a list of buffers: all events of one read in one of them. */
export function convertByHand(pieces, from, to) {
  const out = [];
  const writer = new WRITERS[to]();
  const reader = new READERS[from](writer);
  const decoder = new HandSseBytes((data) => { if (data !== '[DONE]') reader.read(JSON.parse(data)); });
  for (const piece of pieces) {
    decoder.push(piece);
    if (writer.out !== '') { out.push(Buffer.from(writer.out)); writer.out = ''; }
  }
  reader.end();
  out.push(Buffer.from(writer.out));
  return out;
}
