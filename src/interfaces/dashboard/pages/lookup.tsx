import { useEffect } from 'preact/hooks'
import { Loaded, Missing } from '../kit/states.tsx'
import { useResource } from '../resource.ts'
import { navigate } from '../router.ts'
import type { RunDetail, TargetDetail } from '../shapes.ts'

/** Leads from an own id or a source to the page of the run or target. */
export function LookupPage({ what, named }: { what: 'run' | 'target'; named: string }) {
  const ref = encodeURIComponent(named)
  const found = useResource<RunDetail | TargetDetail>(`/api/${what}s/${ref}`)
  const { data, error } = found
  const id = data && ('target' in data ? data.target.id : data.run.id)
  useEffect(() => {
    if (id) navigate(`/${what}s/${id}${location.search}${location.hash}`, { replace: true })
  }, [id])
  const missing = <Missing what={what} id={named} />
  // A name that cannot be one is refused: it is not there either.
  if (error?.status === 400) return missing
  return (
    <Loaded of={found} lines={8} missing={missing}>
      {() => null}
    </Loaded>
  )
}
