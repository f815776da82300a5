/** `file › title` of a test of this folder, the title as it stands in the file. */
export type TestName = `${string} › ${string}`;

/** Something that goes wrong, what is right then, and the tests that hold it. */
export interface Fault {
  fault: string;
  right: string;
  stream: readonly TestName[];
  /** The same for whole answers; a text says why there is no such thing. */
  whole: readonly TestName[] | string;
}
