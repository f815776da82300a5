/** Every text that a page could take for code. */
export const CORPUS: readonly string[] = [
  '<script>ran("script")</script>',
  '</script><script>ran("closing")</script>',
  '<img src=x onerror=ran("onerror")>',
  '<svg onload=ran("svg")>',
  '"><iframe srcdoc="<script>parent.ran(1)</script>">',
  '[link](javascript:ran("link"))',
  '![image](https://evil.example/beacon.png)',
  '<a href="javascript:ran(2)">x</a>',
  '{{constructor.constructor("ran(3)")()}}',
  '\u202e\u0000\ud800 RTL, NUL and a lone surrogate',
  '`$' + '{ran("template")}`',
];
