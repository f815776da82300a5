export { answerOf, DEMO_MODELS, faultsOf, inPieces, languageOf } from './brain.ts';
export { embed, rank, vectorOf } from './vectors.ts';
