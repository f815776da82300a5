/**
 * Colours of both schemes. Blue is Sluice, orange the peer, grey the limits: they differ in brightness too, so that colour-blind readers and
 * prints keep them apart. Texts have a contrast of at least 4.5 to the background, bars and lines of at least 3.
 */
export const THEMES = {
  light: {
    background: '#ffffff',
    text: '#1f2328',
    muted: '#59636e',
    grid: '#e4e8ec',
    axis: '#b1bac4',
    goal: '#1a7f37',
    roles: { limit: '#818b98', reference: '#59636e', peer: '#bc4c00', bare: '#3f8fdf', us: '#0a3f91' },
    protocols: { chat: '#0a3f91', anthropic: '#bc4c00', responses: '#1a7f37', gemini: '#8250df' },
  },
  dark: {
    background: '#0d1117',
    text: '#e6edf3',
    muted: '#9198a1',
    grid: '#21262d',
    axis: '#3d444d',
    goal: '#3fb950',
    roles: { limit: '#6e7781', reference: '#9198a1', peer: '#e0823d', bare: '#2f7fe0', us: '#9ecbff' },
    protocols: { chat: '#79b8ff', anthropic: '#f0883e', responses: '#56d364', gemini: '#d2a8ff' },
  },
};
