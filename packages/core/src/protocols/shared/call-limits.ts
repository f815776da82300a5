import { LimitError } from '../../accumulate/tool-calls.ts';
import { MAX_ARGUMENT_CHARACTERS, MAX_CALLS } from '../../json/limits.ts';

/** What a hostile server can make us keep of the calls of one message: as many, and as much, as of one of chat. */
export class CallLimits {
  #calls = 0;
  #characters = 0;

  /** Another call. */
  open(): void {
    if (++this.#calls > MAX_CALLS) throw new LimitError(`more than ${MAX_CALLS} tool calls in one message`);
  }

  /** More characters of arguments. */
  count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MAX_ARGUMENT_CHARACTERS)
      throw new LimitError(`more than ${MAX_ARGUMENT_CHARACTERS} characters of tool arguments`);
  }
}
