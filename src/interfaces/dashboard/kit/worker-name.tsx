import { safe } from '../model/safe.ts'

type ProcessRef = { readonly who: string | null; readonly host: string; readonly pid: number }

/** A process on a host, or what a table of the user's own calls it. */
export function WorkerName({ is: { who, host, pid } }: { is: ProcessRef }) {
  if (who !== null) return <>{safe(who)}</>
  return (
    <>
      {safe(host)}, process <span class="mono">{pid}</span>
    </>
  )
}
