import { UsageError } from '../../core/model/errors.ts'
import type { Output } from '../../contracts/command.ts'

/** Asks for confirmation. `yes`: it was given by a flag. Without a terminal the error names `alternative`. */
export async function confirm(
  output: Output,
  question: string,
  { yes, alternative }: { yes: boolean; alternative: string },
): Promise<boolean> {
  if (yes) return true
  const answer = await output.ask(`${question} [y/N]`)
  if (answer === null)
    throw new UsageError(`${question} There is no terminal to ask on: ${alternative}.`)
  return /^y(es)?$/i.test(answer)
}

/** For what cannot be undone: the phrase must be typed, or given by a flag. */
export async function confirmByTyping(
  output: Output,
  phrase: string,
  given: string | undefined,
): Promise<boolean> {
  if (given !== undefined && given !== phrase) {
    throw new UsageError(`--confirm must be ${JSON.stringify(phrase)}: nothing was deleted.`)
  }
  const typed = given ?? (await output.ask(`This cannot be undone. Type “${phrase}” to continue:`))
  if (typed === null) {
    throw new UsageError(
      `This cannot be undone, and there is no terminal to ask on: add --confirm ${JSON.stringify(phrase)}.`,
    )
  }
  return typed === phrase
}
