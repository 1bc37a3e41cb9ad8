import { useCallback } from 'preact/hooks'
import { useTimeText } from '../clock.ts'
import { formatAge, formatTimes } from '../model/format.ts'

/** How long ago, counting on. The moment itself, local and UTC, is in the title. */
export function Age({ at, none = '–' }: { at: string | null; none?: string }) {
  const moment = at === null ? null : Date.parse(at)
  const words = useTimeText(
    useCallback((now) => (moment === null ? none : formatAge(moment, now)), [moment, none]),
  )
  if (at === null || moment === null) return <span class="faint">{none}</span>
  return (
    <time class="age" dateTime={at} title={formatTimes(moment)}>
      {words}
    </time>
  )
}
