import { useDeeds } from '../../kit/act.tsx'
import { Explained } from '../../kit/explained.tsx'
import { CopyJson } from '../../kit/copy.tsx'
import { Section } from '../../kit/section.tsx'
import { Loaded } from '../../kit/states.tsx'
import { useResource } from '../../resource.ts'
import type { Explanation, RunDetail } from '../../shapes.ts'

const FRESH_MS = 5_000

/** The verdict on it now, what that rests on, and what would change it. */
export function Why({ detail: { run } }: { detail: RunDetail }) {
  const explanation = useResource<Explanation>(`/api/runs/${run.id}/explain`, {
    round: useDeeds(),
    ...(run.health !== null && { everyMs: FRESH_MS }),
  })
  return (
    <Section title="Why" aside={explanation.data && <CopyJson value={explanation.data} />}>
      <Loaded of={explanation}>{(data) => <Explained explanation={data} />}</Loaded>
    </Section>
  )
}
