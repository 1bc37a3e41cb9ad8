import { differenceOf, type Account } from './action-result.ts'

/** An error as far as people need to know of it. */
export type Trouble = {
  /** 0: there was no answer. */
  readonly status: number
  readonly code: string
  readonly message: string
  readonly body: unknown
  readonly retryAfter: number | null
}

/** One call of an undo, and what came of it; null until it was made. */
export type UndoStep = { readonly path: string; readonly error: string | null } | null

/** Where a dialog stands between the question and the undo. */
export type Stage =
  | { readonly at: 'looking' }
  /** There is no preview, and so nothing to agree to. */
  | { readonly at: 'blind'; readonly error: string }
  | { readonly at: 'preview'; readonly shown: Account; readonly notice: string | null }
  | { readonly at: 'acting'; readonly shown: Account }
  | { readonly at: 'done'; readonly result: Account }
  | { readonly at: 'undoing' | 'undone'; readonly result: Account; readonly steps: UndoStep[] }

export type StageEvent =
  | { readonly type: 'look' | 'act' }
  | { readonly type: 'seen' | 'acted'; readonly account: Account }
  /** `fresh`: the new preview, when the plan had changed. */
  | { readonly type: 'failed'; readonly trouble: Trouble; readonly fresh: Account | null }
  | { readonly type: 'undo'; readonly steps: readonly UndoStep[]; readonly isOver: boolean }

/** What an event makes of a stage. An event that does not fit its stage came late and changes nothing. */
export function nextStage(stage: Stage, event: StageEvent): Stage {
  switch (event.type) {
    case 'look':
      return { at: 'looking' }
    case 'seen':
      return stage.at === 'looking' || stage.at === 'blind'
        ? { at: 'preview', shown: event.account, notice: null }
        : stage
    case 'act':
      return stage.at === 'preview' ? { at: 'acting', shown: stage.shown } : stage
    case 'acted':
      return stage.at === 'acting' ? { at: 'done', result: event.account } : stage
    case 'failed':
      return afterFailure(stage, event.trouble, event.fresh)
    case 'undo': {
      if (!('result' in stage)) return stage
      const at = event.isOver ? 'undone' : 'undoing'
      return { at, result: stage.result, steps: [...event.steps] }
    }
  }
}

function afterFailure(stage: Stage, trouble: Trouble, fresh: Account | null): Stage {
  if (stage.at === 'looking') return { at: 'blind', error: sayTrouble(trouble, false) }
  if (stage.at !== 'acting') return stage
  const { shown } = stage
  if (fresh) {
    const notice = `Nothing was done, because it changed meanwhile: ${differenceOf(shown, fresh)} This is what it would do now.`
    return { at: 'preview', shown: fresh, notice }
  }
  return { at: 'preview', shown, notice: sayTrouble(trouble, true) }
}

/** Why it did not work, and what to do now. */
export function sayTrouble(trouble: Trouble, wasActing: boolean): string {
  const { status, message, retryAfter } = trouble
  if (status === 0 && wasActing)
    return 'The answer got lost, so it is not known whether it was done. Look at the history before you try again.'
  const again =
    status === 429 || status === 503
      ? ` Try again ${retryAfter === null ? 'in a moment' : `in ${retryAfter} s`}.`
      : ''
  return `${wasActing ? 'Nothing was done. ' : ''}${message}${again}`
}

/** Whether what was typed is what has to be typed. Spaces around it do not count. */
export function isAgreed(
  words: { readonly text: string; readonly always: boolean },
  count: number,
  typed: string,
): boolean {
  return !mustType(words, count) || typed.trim() === words.text
}

/** From the hundredth on a slip is too costly for one click. */
export function mustType({ always }: { readonly always: boolean }, count: number): boolean {
  return always || count > 100
}
