/** How a node stands to the server that keeps the shared limits. Every change is a row of one table. */

/** The four states. */
export type State =
  /** Without the server: it is not connected, or it begins an epoch that this node has not joined yet. */
  | { readonly name: 'away' }
  /** The server is told what this node holds. `wasInsured`: before; `isInsured`: it must be told again, of what was admitted meanwhile. */
  | { readonly name: 'joining'; readonly wasInsured: boolean; readonly isInsured: boolean }
  /** Requests use the server. */
  | { readonly name: 'shared'; readonly epoch: string }
  /**
   * Requests were admitted from the part of this node. `epoch`: of a server that is connected, but slow. `isTelling`: it is told of all
   * requests until now.
   */
  | { readonly name: 'insured'; readonly epoch: string | undefined; readonly isTelling: boolean };

/** What happens to a node. */
export type Event =
  /** There is no connection any more. */
  | { readonly type: 'lost' }
  /** A call was refused because its epoch is over. */
  | { readonly type: 'over'; readonly epoch: string }
  /** A request is checked against the part of this node. */
  | { readonly type: 'insure' }
  | { readonly type: 'join' }
  | { readonly type: 'joined'; readonly epoch: string }
  | { readonly type: 'join failed' }
  /** The server of this epoch is told what was admitted without it. */
  | { readonly type: 'tell' }
  | { readonly type: 'told' };

/** Where every node begins. */
export const AWAY: State = { name: 'away' };

/** Whether requests were admitted from the part of this node, and the server was not told yet. */
export const isInsured = (state: State): boolean =>
  state.name === 'insured' || (state.name === 'joining' && (state.wasInsured || state.isInsured));

const insured = (epoch?: string): State => ({ name: 'insured', epoch, isTelling: false });

/** The state after an event. */
export function step(state: State, event: Event): State {
  switch (state.name) {
    case 'away':
      if (event.type === 'insure') return insured();
      return event.type === 'join' ? { name: 'joining', wasInsured: false, isInsured: false } : state;
    case 'joining':
      return stepJoining(state, event);
    case 'shared':
      if (event.type === 'insure') return insured(state.epoch);
      return isEnd(event, state.epoch) ? AWAY : state;
    case 'insured':
      return stepInsured(state, event);
    default:
      return state satisfies never;
  }
}

function stepJoining(state: State & { name: 'joining' }, event: Event): State {
  switch (event.type) {
    case 'insure':
      return { ...state, isInsured: true };
    case 'joined':
      return state.isInsured ? insured(event.epoch) : { name: 'shared', epoch: event.epoch };
    case 'join failed':
      return state.isInsured || state.wasInsured ? insured() : AWAY;
    // The calls of a join fail by themselves when the connection is lost.
    default:
      return state;
  }
}

function stepInsured(state: State & { name: 'insured' }, event: Event): State {
  switch (event.type) {
    case 'insure':
      return state.isTelling ? { ...state, isTelling: false } : state;
    case 'join':
      return { name: 'joining', wasInsured: true, isInsured: false };
    case 'tell':
      return { ...state, isTelling: state.epoch !== undefined };
    case 'told':
      return state.isTelling && state.epoch !== undefined ? { name: 'shared', epoch: state.epoch } : state;
    default:
      return isEnd(event, state.epoch) ? insured() : state;
  }
}

const isEnd = (event: Event, epoch: string | undefined): boolean =>
  event.type === 'lost' || (event.type === 'over' && event.epoch === epoch);
