import { isSecretVariable } from '../../core/model/redact.ts'

/** What a run's command finds in its environment. */
export type RunVariables = {
  readonly runId: string
  readonly source: string
  readonly url: string
  readonly token: string
  /** Null: it is reached over TCP. */
  readonly socket: string | null
  readonly outputDir: string
  readonly resumed: boolean
  /** JSON, as it was queued; null when it was not. */
  readonly input: unknown
}

/** Meant for Unstuck alone: its database, its parent, what a service manager gave it. Another run's are replaced. */
const RESERVED = [
  'UNSTUCK_DB',
  'UNSTUCK_PARENT',
  'UNSTUCK_RUN_ID',
  'UNSTUCK_SOURCE',
  'UNSTUCK_URL',
  'UNSTUCK_TOKEN',
  'UNSTUCK_SOCKET',
  'UNSTUCK_OUTPUT_DIR',
  'UNSTUCK_RESUME',
  'UNSTUCK_INPUT',
  'NOTIFY_SOCKET',
  'WATCHDOG_USEC',
  'WATCHDOG_PID',
]

/** Whether a variable of this name reaches the commands that Unstuck starts. */
export function isInherited(name: string): boolean {
  return !RESERVED.includes(name) && !isSecretVariable(name)
}

/** The user's environment, less Unstuck's own secrets, with what the run has to offer. */
export function commandEnvironment(
  userEnv: Readonly<Record<string, string | undefined>>,
  run: RunVariables,
): Record<string, string> {
  const inherited: Record<string, string> = {}
  for (const [name, value] of Object.entries(userEnv)) {
    if (value !== undefined && isInherited(name)) inherited[name] = value
  }
  return {
    ...inherited,
    ...noProxyVariables(inherited),
    UNSTUCK_RUN_ID: run.runId,
    UNSTUCK_SOURCE: run.source,
    UNSTUCK_URL: run.url,
    UNSTUCK_TOKEN: run.token,
    ...(run.socket !== null && { UNSTUCK_SOCKET: run.socket }),
    UNSTUCK_OUTPUT_DIR: run.outputDir,
    UNSTUCK_RESUME: run.resumed ? '1' : '0',
    ...(run.input !== null && { UNSTUCK_INPUT: JSON.stringify(run.input) }),
  }
}

/** Scrapers often have a proxy, and most programs would send calls to their own API through it. */
function noProxyVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  const hasProxy = Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name))
  if (!hasProxy) return {}
  const local = '127.0.0.1,localhost'
  const withLocal = (name: string): string => (env[name] ? `${env[name]},${local}` : local)
  return { no_proxy: withLocal('no_proxy'), NO_PROXY: withLocal('NO_PROXY') }
}
