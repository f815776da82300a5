import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import dark from '../../../docs/images/sluice-dark.svg';
import light from '../../../docs/images/sluice-light.svg';
import './style.css';

const ALT = 'Clients such as Claude Code, Codex and the SDKs on the left, Sluice in the middle, providers on the right';

const picture = (src, scheme) => h('img', { class: `home-picture ${scheme}`, src, alt: ALT });

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-after': () => [picture(light, 'light'), picture(dark, 'dark')] }),
};
