/** The states of a node towards the server that keeps its limits. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AWAY, type Event, isInsured, type State, step } from '../../src/admission/shared/standing.ts';

const run = (...events: readonly Event[]): State => events.reduce(step, AWAY);

const JOIN = { type: 'join' } as const;
const FAILED = { type: 'join failed' } as const;
const INSURE = { type: 'insure' } as const;
const LOST = { type: 'lost' } as const;
const TELL = { type: 'tell' } as const;
const TOLD = { type: 'told' } as const;
const joined = (epoch: string) => ({ type: 'joined', epoch }) as const;
const over = (epoch: string) => ({ type: 'over', epoch }) as const;

test.each([
  ['begins away', [], { name: 'away' }],
  ['uses the server after it has joined', [JOIN, joined('1')], { name: 'shared', epoch: '1' }],
  ['is away again after a join that failed', [JOIN, FAILED], { name: 'away' }],
  ['stays insured after a join that failed', [INSURE, JOIN, FAILED], { name: 'insured', epoch: undefined }],
  ['is told everything by a join', [INSURE, JOIN, joined('1')], { name: 'shared', epoch: '1' }],
  ['tells again what was admitted during a join', [JOIN, INSURE, joined('1')], { name: 'insured', epoch: '1' }],
  ['leaves with its connection', [JOIN, joined('1'), LOST], { name: 'away' }],
  ['leaves an epoch that is over', [JOIN, joined('1'), over('1')], { name: 'away' }],
  ['stays when an older epoch is over', [JOIN, joined('2'), over('1')], { name: 'shared', epoch: '2' }],
  ['is insured beside a slow server', [JOIN, joined('1'), INSURE], { name: 'insured', epoch: '1' }],
  ['uses a server again that was told', [JOIN, joined('1'), INSURE, TELL, TOLD], { name: 'shared', epoch: '1' }],
  ['tells again what was admitted meanwhile', [JOIN, joined('1'), INSURE, TELL, INSURE, TOLD], { name: 'insured', epoch: '1' }],
  ['cannot tell a server that is gone', [JOIN, joined('1'), INSURE, LOST, TELL, TOLD], { name: 'insured', epoch: undefined }],
] as const)('a node %s', (_, events, state) => {
  expect(run(...events)).toMatchObject(state);
});

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.constantFrom<Event>(JOIN, FAILED, INSURE, LOST, TELL, TOLD),
  fc.constantFrom('1', '2').map(joined),
  fc.constantFrom('1', '2').map(over),
);

test('what was admitted without the server is not forgotten before the server has it', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      let state: State = AWAY;
      /** Whether the server is to be told. `open` joins and calls tell what was admitted before them. */
      let isOwed = false;
      let isBeingTold = false;
      for (const next of events) {
        const before = state;
        state = step(state, next);
        if (next.type === 'insure') [isOwed, isBeingTold] = [true, false];
        if ((next.type === 'join' && state !== before) || (next.type === 'tell' && state !== before)) isBeingTold = true;
        const hasTold = isBeingTold && ((before.name === 'joining' && next.type === 'joined') || next.type === 'told');
        if (hasTold && state.name === 'shared') [isOwed, isBeingTold] = [false, false];
        if (isOwed) expect(isInsured(state)).toBe(true);
      }
    }),
  );
});
