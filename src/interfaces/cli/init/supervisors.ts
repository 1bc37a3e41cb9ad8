import { closest } from '../../../core/model/closest.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import {
  escapeCron,
  escapeJs,
  escapeJson,
  escapeSpecifiers,
  escapeXml,
  execStart,
} from './escape.ts'
import type { Facts } from './project.ts'
import { renderTemplate, type NewFile } from './write.ts'

/** Files for one supervisor, and the commands that install them. */
export type Supervisor = {
  readonly files: (facts: Facts) => readonly NewFile[]
  readonly next: (facts: Facts) => readonly string[]
}

/** A supervisor kills after this time: a stop takes `STOP_DEADLINE_MS`, and a slow machine needs some more. */
const KILL_AFTER_SECONDS = STOP_DEADLINE_MS / 1_000 + 15
const CRONTAB = 'unstuck.cron'
const TASK = 'unstuck-clean.xml'

const SUPERVISORS = {
  pm2: {
    files: (facts) => [
      render('ecosystem.config.cjs', 'for PM2', facts, escapeJs, { bin: facts.binFromFolder }),
    ],
    next: () => ['pm2 start ecosystem.config.cjs', 'pm2 save'],
  },
  systemd: {
    files: (facts) => [
      {
        ...render(
          'unstuck.service',
          'for systemd',
          facts,
          escapeSpecifiers,
          {},
          {
            EXECSTART: execStart([
              facts.node,
              facts.bin,
              'work',
              facts.module,
              '--workers',
              String(facts.workers),
            ]),
          },
        ),
        path: `${facts.name}.service`,
      },
    ],
    next: ({ name }) => [
      `sudo cp ${name}.service /etc/systemd/system/`,
      'sudo systemctl daemon-reload',
      `sudo systemctl enable --now ${name}`,
    ],
  },
  docker: {
    files: (facts) => [
      render('Dockerfile', 'for Docker', facts, escapeJson, {
        install: facts.hasLockFile ? 'ci' : 'install',
      }),
      render('.dockerignore', 'what stays out of the image', facts, escapeJson),
    ],
    next: ({ name }) => [
      `docker build -t ${name} .`,
      `docker run -d --name ${name} --init --stop-timeout ${KILL_AFTER_SECONDS} --restart unless-stopped -v ${name}:/app/.unstuck ${name}`,
    ],
  },
  kubernetes: {
    files: (facts) => [render('kubernetes.yaml', 'for Kubernetes', facts, escapeJson)],
    next: () => ['kubectl apply -f kubernetes.yaml'],
  },
  cron: {
    files: (facts) => [render(CRONTAB, 'cleans every night, by cron', facts, escapeCron)],
    next: () => [`(crontab -l 2>/dev/null; cat ${CRONTAB}) | crontab -`],
  },
  windows: {
    files: (facts) => [
      {
        ...render(TASK, "cleans every night, by Windows' Task Scheduler", facts, escapeXml, {
          bin: facts.binFromFolder,
        }),
        // schtasks rejects UTF-8.
        utf16: true,
      },
    ],
    next: ({ name }) => [`schtasks /Create /TN ${name}-clean /XML ${TASK}`],
  },
} satisfies Record<string, Supervisor>

export type SupervisorName = keyof typeof SUPERVISORS
export const SUPERVISOR_NAMES = Object.keys(SUPERVISORS) as SupervisorName[]

export function supervisor(name: SupervisorName): Supervisor {
  return SUPERVISORS[name]
}

/** Returns the values of `--for`, each once. */
export function readSupervisors(given: readonly string[]): SupervisorName[] {
  for (const name of given) {
    if ((SUPERVISOR_NAMES as string[]).includes(name)) continue
    const hint = closest(name, SUPERVISOR_NAMES)
    throw new UsageError(
      `--for takes ${SUPERVISOR_NAMES.join(', ')}, not ${JSON.stringify(name)}. ` +
        (hint
          ? `Did you mean ${hint}?`
          : 'A folder is written before it: `unstuck init FOLDER --for …`.'),
    )
  }
  return [...new Set(given)] as SupervisorName[]
}

/** `own` replaces values before they are escaped; `escaped` adds values that are escaped already. */
function render(
  path: string,
  about: string,
  facts: Facts,
  escape: (text: string) => string,
  own: Readonly<Record<string, string>> = {},
  escaped: Readonly<Record<string, string>> = {},
): NewFile {
  const values: Record<string, string> = { ...escaped }
  const { folder, module, name, workers, node, bin, user } = facts
  const all = { folder, module, name, workers, node, bin, user, ...own }
  for (const [key, value] of Object.entries(all)) values[key.toUpperCase()] = escape(String(value))
  return { path, about, text: renderTemplate(path, values) }
}
