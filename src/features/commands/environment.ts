import { isSecretVariable } from '../../core/model/redact.ts'

/** The variables of a run's command. */
export type RunVariables = {
  readonly runId: string
  readonly source: string
  readonly url: string
  readonly token: string
  /** Null: the API listens on TCP. */
  readonly socket: string | null
  readonly outputDir: string
  readonly resumed: boolean
  /** Which API it is: that of one run, or that of a worker of many targets. */
  readonly api: 'run' | 'worker'
  /** JSON, as it was queued; null without one. */
  readonly input: unknown
}

/** Variables for Unstuck only: its database, its parent, those of a service manager, and those of another run. */
const RESERVED = [
  'UNSTUCK_DB',
  'UNSTUCK_PARENT',
  'UNSTUCK_RUN_ID',
  'UNSTUCK_SOURCE',
  'UNSTUCK_API',
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

/** Returns true if commands that Unstuck starts get this variable. */
export function isInherited(name: string): boolean {
  return !RESERVED.includes(name) && !isSecretVariable(name)
}

/** Returns the user's environment without Unstuck's own variables, and with those of the run. */
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
    UNSTUCK_API: run.api,
    UNSTUCK_URL: run.url,
    UNSTUCK_TOKEN: run.token,
    ...(run.socket !== null && { UNSTUCK_SOCKET: run.socket }),
    UNSTUCK_OUTPUT_DIR: run.outputDir,
    UNSTUCK_RESUME: run.resumed ? '1' : '0',
    ...(run.input !== null && { UNSTUCK_INPUT: JSON.stringify(run.input) }),
  }
}

/** Programs with a proxy would send calls to their own API through it. */
function noProxyVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  const hasProxy = Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name))
  if (!hasProxy) return {}
  const local = '127.0.0.1,localhost'
  const withLocal = (name: string): string => (env[name] ? `${env[name]},${local}` : local)
  return { no_proxy: withLocal('no_proxy'), NO_PROXY: withLocal('NO_PROXY') }
}
