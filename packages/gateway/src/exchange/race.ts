/** Who may write to the client of an exchange: one upstream at a time, or the gateway itself when none is left. */

import type { ClientConnection } from './client-connection.ts';
import { type Candidate, type Outcome, STOPPED } from './types.ts';

/**
 * The upstreams of one exchange. Each runs in a lane. The first one with content claims the client, which ends all other
 * lanes: what they wait for, dial or read. When its stream breaks off and its lane ends, another one may claim the client.
 */
export class Race {
  readonly #connection: ClientConnection;
  readonly #lanes: Lane[] = [];
  #claim: Claim | undefined;
  #wasClaimed = false;
  #isOver = false;

  constructor(connection: ClientConnection) {
    this.#connection = connection;
  }

  /** Whether an upstream has sent content, so that no second one is requested beside it. */
  get wasClaimed(): boolean {
    return this.#wasClaimed;
  }

  /** A lane for a candidate. It has lost already when the client is claimed. */
  enter(candidate: Candidate): Lane {
    const lane = new Lane(this, candidate, this.#connection);
    if (this.#claim) lane.lose();
    else this.#lanes.push(lane);
    return lane;
  }

  /** Ends all lanes for good. Afterwards only the holder of this claim, the gateway itself, can write to the client. */
  conclude(): Claim {
    this.#isOver = true;
    this.#claim = new Claim(this, undefined);
    for (const lane of this.#lanes.splice(0)) lane.lose();
    return this.#claim;
  }

  /** For lanes. */
  claimFor(lane: Lane): Claim | undefined {
    if (this.#isOver || lane.isOver) return undefined;
    this.#wasClaimed = true;
    this.#claim = new Claim(this, lane);
    for (const other of this.#lanes) if (other !== lane) other.lose();
    return this.#claim;
  }

  /** For lanes. A response that has ended stays claimed: nothing may follow it. */
  remove(lane: Lane, { is }: Outcome): void {
    const at = this.#lanes.indexOf(lane);
    if (at >= 0) this.#lanes.splice(at, 1);
    if (this.#claim?.lane === lane && is !== 'answered') this.#claim = undefined;
  }

  /** For claims. */
  isHeld(claim: Claim): boolean {
    return this.#claim === claim;
  }
}

/** The right to write to the client. It ends when its lane ends or claims again, and when the gateway takes the client over. */
class Claim {
  readonly #race: Race;
  /** Undefined for the claim of the gateway itself. */
  readonly lane: Lane | undefined;

  constructor(race: Race, lane: Lane | undefined) {
    this.#race = race;
    this.lane = lane;
  }

  get isHeld(): boolean {
    return this.#race.isHeld(this);
  }
}

/** Only a race makes claims. */
export type { Claim };

/** The way of one candidate through a race, with all its attempts. */
export class Lane {
  readonly candidate: Candidate;
  readonly #race: Race;
  readonly #connection: ClientConnection;
  readonly #listeners: (() => void)[] = [];
  #isOver = false;

  constructor(race: Race, candidate: Candidate, connection: ClientConnection) {
    this.#race = race;
    this.candidate = candidate;
    this.#connection = connection;
  }

  /** The client belongs to another lane, or this one has left: nothing more is sent for it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Takes the client for the response of an attempt, and ends the other lanes before it returns. Undefined when this lane
   * has lost. A later claim of the same lane, to continue its own stream, replaces the one before.
   */
  claim(): Claim | undefined {
    return this.#race.claimFor(this);
  }

  /** The candidate is done. */
  leave(outcome: Outcome): Finish {
    this.#isOver = true;
    this.#race.remove(this, outcome);
    return { candidate: this.candidate, outcome };
  }

  /** For the race: ends everything that this lane does. */
  lose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const listener of this.#listeners.splice(0)) listener();
  }

  /** Calls the listener once, when the lane loses. Returns a function that takes it back. */
  onLost(listener: () => void): () => void {
    this.#listeners.push(listener);
    return () => {
      const at = this.#listeners.indexOf(listener);
      if (at >= 0) this.#listeners.splice(at, 1);
    };
  }

  /** Waits. Resolves with false, at once, when the lane loses or the exchange is interrupted. */
  wait(ms: number): Promise<boolean> {
    return this.#until((done) => {
      const timer = this.#connection.clock.setTimer(done, ms);
      return () => timer.close();
    });
  }

  /** Waits for a promise. Resolves with false, at once, when the lane loses or the exchange is interrupted. */
  waitFor(pending: Promise<unknown>): Promise<boolean> {
    return this.#until((done, fail) => {
      pending.then(done, fail);
      return () => undefined;
    });
  }

  #until(start: (done: () => void, fail: (cause: unknown) => void) => () => void): Promise<boolean> {
    const connection = this.#connection;
    if (this.#isOver || connection.isInterrupted) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        stop();
        stopListening();
        connection.unlisten(giveUp);
      };
      const giveUp = (): void => {
        finish();
        resolve(false);
      };
      const done = (): void => {
        finish();
        resolve(true);
      };
      const fail = (cause: unknown): void => {
        finish();
        reject(cause);
      };
      const stopListening = this.onLost(giveUp);
      connection.listen(giveUp);
      const stop = start(done, fail);
    });
  }

  /** The outcome of an attempt that was not sent, because the lane has lost or the exchange is interrupted. */
  explainEnd(): Outcome {
    const connection = this.#connection;
    if (this.#isOver) return LOST;
    return connection.isGone ? GONE : { is: 'failed', error: connection.stopError ?? STOPPED };
  }
}

/** What became of a lane. */
export interface Finish {
  readonly candidate: Candidate;
  readonly outcome: Outcome;
}

/** Another upstream has the client. */
export const LOST: Outcome = { is: 'lost' };

const GONE: Outcome = { is: 'gone' };

/** What counts of two lanes: what the client has received says more than what it has not. */
const RANKS = { answered: 4, gone: 3, broken: 2, failed: 1, lost: 0 } as const satisfies Record<Outcome['is'], number>;

/** The result of two lanes at the same time; of equal ones the second, which was requested later. */
export const chooseFinish = (one: Finish, other: Finish): Finish =>
  RANKS[other.outcome.is] >= RANKS[one.outcome.is] ? other : one;
