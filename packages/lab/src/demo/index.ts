export { buildDemoResponse, chooseProtocol, DEMO_MODELS, readFaults, streamWords } from './brain.ts';
export { embed, embedText, rank } from './vectors.ts';
