import { UsageError } from '../../core/model/errors.ts'
import type { Output } from './output.ts'

/** Whether a person agrees. `yes`: said so beforehand. Where nobody can be asked, `elsewise` says what to add. */
export async function isAgreed(
  output: Output,
  question: string,
  { yes, elsewise }: { yes: boolean; elsewise: string },
): Promise<boolean> {
  if (yes) return true
  const answer = await output.ask(`${question} [y/N]`)
  if (answer === null) throw new UsageError(`${question} Nobody is there to ask: ${elsewise}.`)
  return /^y(es)?$/i.test(answer)
}

/** For what cannot be undone: the words must be typed, or given beforehand. */
export async function isTyped(
  output: Output,
  words: string,
  given: string | undefined,
): Promise<boolean> {
  if (given !== undefined && given !== words) {
    throw new UsageError(`--confirm must be ${JSON.stringify(words)}: nothing was deleted.`)
  }
  const typed = given ?? (await output.ask(`This cannot be undone. Type “${words}” to go on:`))
  if (typed === null) {
    throw new UsageError(
      `This cannot be undone, and nobody is there to ask: add --confirm ${JSON.stringify(words)}.`,
    )
  }
  return typed === words
}
