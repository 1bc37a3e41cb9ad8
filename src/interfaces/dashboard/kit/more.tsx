import { useState } from 'preact/hooks'
import type { List } from '../resource.ts'
import { formatNumber } from '../model/format.ts'
import { Button } from './button.tsx'

/** Below a list: how many are shown, and the next ones. */
export function More<T>({ list, what }: { list: List<T>; what: string }) {
  const [isBusy, setBusy] = useState(false)
  const shown = list.items?.length ?? 0
  const more = () => {
    setBusy(true)
    void list.more().finally(() => setBusy(false))
  }
  return (
    <div class="more">
      <span class="faint" role="status">
        {formatNumber(shown)} shown{list.hasMore ? '' : ', that is all'}
      </span>
      {list.hasMore && (
        <Button size="small" isBusy={isBusy} onClick={more}>
          More {what}
        </Button>
      )}
    </div>
  )
}
