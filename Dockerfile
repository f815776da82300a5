# The gateway, built from source: docker build -t sluice .   (compose.yaml runs it.)

# The index of node:24-slim of 3 August 2026 (Node 24.19.0, Debian 12; amd64, arm64, ppc64le), as docker-library/repo-info lists it.
FROM node:24-slim@sha256:cd84903a12dbd26b46f1f3b8144a2568c41c5d37ddd0c7a80a34c7a19786b35f AS base
ENV NPM_CONFIG_UPDATE_NOTIFIER=false

# Manifests alone: dependencies are installed again only when one of these changes. npm needs those of all workspaces.
FROM base AS manifests
WORKDIR /sluice
COPY package.json package-lock.json .npmrc ./
COPY packages/ai-sdk/package.json packages/ai-sdk/
COPY packages/console/package.json packages/console/
COPY packages/core/package.json packages/core/
COPY packages/gateway/package.json packages/gateway/
COPY packages/lab/package.json packages/lab/
COPY packages/langchain/package.json packages/langchain/
COPY bench/package.json bench/
# npm links the command only when its file exists.
COPY packages/gateway/bin packages/gateway/bin

FROM manifests AS build
RUN npm ci --ignore-scripts
COPY tsconfig.base.json tsconfig.json ./
COPY scripts/build.js scripts/
COPY scripts/build scripts/build
COPY packages packages
RUN npm run build

# What the gateway needs to run. Its build contains what it uses of the lab and the console.
FROM manifests AS production
RUN npm ci --ignore-scripts --omit=dev --workspace packages/core --workspace packages/gateway

FROM base
ENV NODE_ENV=production SLUICE_DATA=/data
# `sluice` for `docker exec`.
ENV PATH=/sluice/node_modules/.bin:$PATH
WORKDIR /sluice
COPY LICENSE ./
COPY --from=production /sluice ./
COPY packages/gateway/prices.json packages/gateway/
COPY --from=build /sluice/packages/core/dist packages/core/dist
COPY --from=build /sluice/packages/gateway/dist packages/gateway/dist

# Keys and usage. The user is "node" of the base image, by number: Kubernetes checks runAsNonRoot only with numbers.
RUN install -d -m 700 -o 1000 -g 1000 /data
VOLUME /data

# A sluice.yaml mounted here is used, and read again when it changes.
WORKDIR /config
USER 1000:1000
EXPOSE 4141
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4141/health/ready').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["sluice"]
# Other machines can reach this address, so the gateway starts only with client keys: SLUICE_KEYS, auth.keys, or keys in /data.
CMD ["serve", "--host", "0.0.0.0", "--port", "4141"]
