import { useCompletedActions } from '../../kit/action-host.tsx'
import { ExplanationDetails } from '../../kit/explanation.tsx'
import { CopyJson } from '../../kit/copy.tsx'
import { Section } from '../../kit/section.tsx'
import { Loaded } from '../../kit/states.tsx'
import { useResource } from '../../resource.ts'
import type { Explanation, RunDetail } from '../../shapes.ts'

const FRESH_MS = 5_000

/** The verdict on it now, what that rests on, and what would change it. */
export function RunExplanation({ detail: { run } }: { detail: RunDetail }) {
  const explanation = useResource<Explanation>(`/api/runs/${run.id}/explain`, {
    version: useCompletedActions(),
    ...(run.health !== null && { refreshMs: FRESH_MS }),
  })
  return (
    <Section title="Why" aside={explanation.data && <CopyJson value={explanation.data} />}>
      <Loaded of={explanation}>{(data) => <ExplanationDetails explanation={data} />}</Loaded>
    </Section>
  )
}
