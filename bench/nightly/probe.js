/** Loaded into the gateway with `--import`: answers the parent's messages with what the process holds after a garbage collection. */
process.on('message', () => {
  // The second one takes what the first one's finalizers let go.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  const active = process.getActiveResourcesInfo();
  const timers = active.filter((kind) => kind === 'Timeout').length;
  process.send({ heapUsed, external, rss, timers, handles: active.length - timers });
});
process.on('disconnect', () => process.exit(1));
// The channel alone must not keep the gateway alive.
process.channel.unref();
