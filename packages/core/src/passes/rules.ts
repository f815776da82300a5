import type { Note } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type { RequestParameters } from '../canonical/request.ts';

export type Loss = Omit<Note, 'code'>;

/** How a pass tells what it did. The protocols bring these: only they know how strict the caller is. */
export interface Telling {
  note(note: Note): void;
  /** Something is left out: a note, or an error when the policy is strict about it. */
  drop(loss: Loss): void;
  /** Wrong input was mended: a note, or an error when the policy is strict about it. */
  repair(loss: Loss): void;
  /** Leaving it out would be silently wrong: always an error. */
  refuse(loss: Loss): never;
}

/** What a name or an id may look like. */
export interface NameRule {
  pattern: RegExp;
  max: number;
}

export interface MediaRule {
  /** Formats of inline audio it hears. */
  audio: readonly string[];
  /** Fetches documents by URL. */
  fileUrls: boolean;
  /** Refers to images by the id of an uploaded file. */
  imageIds: boolean;
  /** Tool results may hold images and files; otherwise these follow in a user message. */
  inToolResults: boolean;
}

/** The numbers that have bounds, [least, most]. */
export type Bounds = {
  [K in keyof RequestParameters as number extends RequestParameters[K] ? K : never]?: readonly [number, number];
};

/** What a target asks of a request. */
export interface Rules extends Telling {
  protocol: ProtocolId;
  toolName: NameRule;
  toolId: NameRule;
  media: MediaRule;
  /** Messages of one role may not follow each other. */
  alternate: boolean;
  bounds: Bounds;
  maxStop: number;
  maxTools: number;
  maxCacheMarks: number;
}
