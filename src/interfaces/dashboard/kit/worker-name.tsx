import { safe } from '../model/safe.ts'

type ProcessRef = { readonly label: string | null; readonly host: string; readonly pid: number }

/** A process on a host, or what a table of the user's own calls it. */
export function WorkerName({ is: { label, host, pid } }: { is: ProcessRef }) {
  if (label !== null) return <>{safe(label)}</>
  return (
    <>
      {safe(host)}, process <span class="mono">{pid}</span>
    </>
  )
}
