import { messageOf, UnstuckError } from '../core/model/errors.ts'
import { EXIT, exitCodeOf as errorExitCode } from '../core/model/exit-codes.ts'

/** The result of a check that may throw. */
export type Attempt<T> = { readonly value: T } | { readonly error: unknown }

export async function attempt<T>(check: () => Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await check() }
  } catch (error) {
    return { error }
  }
}

/** `note`: good to know. `warning`: works, but a person should look. `problem`: a promise or the work is at stake. */
export const RESULTS = ['ok', 'note', 'warning', 'problem'] as const
export type Result = (typeof RESULTS)[number]

/** What one check of `unstuck doctor` found. */
export type Finding = {
  /** The check's name: stable, for scripts. */
  readonly check: string
  readonly result: Result
  /** In a sentence. */
  readonly found: string
  /** The single facts behind it. */
  readonly details: readonly string[]
  /** Why it matters; null when all is well. */
  readonly why: string | null
  /** The command or setting that mends it; null when there is nothing to mend. */
  readonly mend: string | null
  /** Asked for where 3 would say too little: the config is wrong, the database away, the schema newer. */
  readonly exitCode: number | null
}

type Advice = {
  readonly why: string
  readonly mend?: string | null
  readonly details?: readonly string[]
  readonly exitCode?: number
}

export function ok(check: string, found: string): Finding {
  return { check, result: 'ok', found, details: [], why: null, mend: null, exitCode: null }
}

export const note = (check: string, found: string, advice: Advice): Finding =>
  finding('note', check, found, advice)
export const warning = (check: string, found: string, advice: Advice): Finding =>
  finding('warning', check, found, advice)
export const problem = (check: string, found: string, advice: Advice): Finding =>
  finding('problem', check, found, advice)

function finding(
  result: Result,
  check: string,
  found: string,
  { why, mend = null, details = [], exitCode }: Advice,
): Finding {
  return { check, result, found, details, why, mend, exitCode: exitCode ?? null }
}

/** An error that stopped a check. The rest goes on, and the exit code is the error's own. */
export function fromError(check: string, error: unknown, advice: Advice): Finding {
  const [found = '', ...lines] = messageOf(error).split('\n')
  const details = lines.map((line) => line.replace(/^- /, ''))
  return finding('problem', check, found, {
    details,
    ...(error instanceof UnstuckError && { exitCode: errorExitCode(error) }),
    ...advice,
  })
}

/** Without a usable config or database little else could be looked at: their codes come first. */
const EXIT_CODE_PRIORITY = [EXIT.usage, EXIT.unreachable, EXIT.schema]

export function exitCodeOf(findings: readonly Finding[]): number {
  const asked = findings.map(({ exitCode }) => exitCode)
  const first = EXIT_CODE_PRIORITY.find((code) => asked.includes(code))
  if (first !== undefined) return first
  return ['warning', 'problem'].includes(worst(findings)) ? EXIT.needsAttention : EXIT.done
}

export function worst(findings: readonly Finding[]): Result {
  const place = Math.max(0, ...findings.map(({ result }) => RESULTS.indexOf(result)))
  return RESULTS[place]!
}

/** The first few of a list, and how many there are beside them. */
export function firstOf(all: readonly string[], few = 5): string[] {
  return all.length <= few ? [...all] : [...all.slice(0, few), `and ${all.length - few} more`]
}
