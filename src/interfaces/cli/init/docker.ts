import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import { KILL_AFTER_SECONDS, type Facts, type Supervisor } from './facts.ts'

/** Where the default database is, in the image: the folder to keep. */
export const DATA_IN_IMAGE = '/app/.unstuck'

export const docker: Supervisor = {
  files: (facts) => [
    { path: 'Dockerfile', text: dockerfile(facts), about: 'for Docker' },
    { path: '.dockerignore', text: DOCKERIGNORE, about: 'what stays out of the image' },
  ],
  next: ({ name }) => [`docker build -t ${name} .`, dockerRun(name)],
}

function dockerRun(name: string): string {
  const flags = `--init --stop-timeout ${KILL_AFTER_SECONDS} --restart unless-stopped`
  return `docker run -d --name ${name} ${flags} -v ${name}:${DATA_IN_IMAGE} ${name}`
}

/** In a container the package lies in the folder itself, wherever it is on this machine. */
export function commandInImage({ module, workers }: Facts): string {
  const words = ['node', 'node_modules/unstuck/bin/unstuck.js', 'work', module]
  return `[${[...words, '--workers', String(workers)].map((word) => JSON.stringify(word)).join(', ')}]`
}

function dockerfile(facts: Facts): string {
  const { name, locked } = facts
  return `# Runs \`unstuck work\` in a container.
#
#   docker build -t ${name} .
#   ${dockerRun(name)}
#   docker stop -t ${KILL_AFTER_SECONDS} ${name}
#
# --init puts a small init before Unstuck, to clear away what browsers leave behind. SIGTERM is understood either way.
# A stop takes ${STOP_DEADLINE_MS / 1_000} s at most; Docker alone would kill after 10 s. In a compose file: init: true, stop_grace_period: ${KILL_AFTER_SECONDS}s.
# With PostgreSQL no volume is needed: -e UNSTUCK_DB=postgres://…
# The settings are explained in node_modules/unstuck/docs/supervisors.md.

# 24.15 or newer.
FROM node:24-slim
WORKDIR /app
ENV NODE_ENV=production

COPY package*.json ./
RUN npm ${locked ? 'ci' : 'install'} --omit=dev
COPY . .

# The database and the journals. Made before the volume, so that it belongs to the user who writes there.
RUN mkdir -p ${DATA_IN_IMAGE} && chown node:node ${DATA_IN_IMAGE}
VOLUME ${DATA_IN_IMAGE}

USER node
STOPSIGNAL SIGTERM
# Node itself: npm or a shell in between would keep SIGTERM from it.
CMD ${commandInImage(facts)}
`
}

const DOCKERIGNORE = `node_modules
.unstuck
.git
.env*
*.log
`
