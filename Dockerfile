# The gateway, from source:  docker build -t sluice .  ·  compose.yaml shows how it is run.

FROM node:20-slim AS build
WORKDIR /sluice
# The manifests alone first: as long as they do not change, neither does what is installed.
COPY package.json package-lock.json .npmrc ./
COPY packages/core/package.json packages/core/
COPY packages/gateway/package.json packages/gateway/
COPY packages/lab/package.json packages/lab/
COPY packages/gateway/bin packages/gateway/bin
COPY bench/package.json bench/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.base.json ./
COPY scripts/build.js scripts/
COPY scripts/build scripts/build
COPY packages packages
RUN npm run build

# The gateway has what it uses of the lab in its own build, so the lab is not installed.
FROM node:20-slim
ENV NODE_ENV=production
WORKDIR /sluice
COPY package.json package-lock.json .npmrc LICENSE ./
COPY packages/core/package.json packages/core/
COPY packages/gateway/package.json packages/gateway/
COPY packages/gateway/bin packages/gateway/bin
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund --workspace packages/core --workspace packages/gateway \
  && npm cache clean --force
COPY --from=build /sluice/packages/core/dist packages/core/dist
COPY --from=build /sluice/packages/gateway/dist packages/gateway/dist

# A sluice.yaml that is mounted here is found, and read again when it changes.
WORKDIR /config
USER node
EXPOSE 4141
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4141/health/ready').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/sluice/packages/gateway/bin/sluice.js"]
# From outside of the container: only with keys for the clients (SLUICE_KEYS, or auth.keys).
CMD ["serve", "--host", "0.0.0.0", "--port", "4141"]
