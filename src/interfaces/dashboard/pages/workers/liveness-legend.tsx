import { Section } from '../../kit/section.tsx'
import { StatusPill } from '../../kit/status.tsx'
import type { Liveness } from '../../shapes.ts'

const MEANINGS: readonly { readonly liveness: Liveness; readonly means: string }[] = [
  { liveness: 'present', means: 'It holds its lock or beats in time.' },
  {
    liveness: 'gone',
    means:
      'Proven dead: the kernel or the database freed the lock that only its end frees, or its process no longer exists. What it held is taken back at once.',
  },
  {
    liveness: 'silent',
    means:
      'Presumed dead: no beat for a whole lease. What it held is taken back; should it wake up, its late writes are refused.',
  },
  {
    liveness: 'stalled',
    means:
      'It beats, but its work has not moved for longer than the policy allows. A person is told; the policy may also stop it.',
  },
  {
    liveness: 'unknown',
    means: 'Cannot be told from here, so nothing is done to it.',
  },
]

/** The five words, for those who read them for the first time. `hasRows`: some are known by tables of the user's own. */
export function LivenessLegend({ hasRows }: { hasRows: boolean }) {
  return (
    <Section title="What the signs mean">
      <dl class="legend">
        {MEANINGS.map(({ liveness, means }) => (
          <div key={liveness}>
            <dt>
              <StatusPill is={liveness} />
            </dt>
            <dd>{means}</dd>
          </div>
        ))}
      </dl>
      {hasRows && (
        <p class="legend-note">
          Of who works on rows of tables of your own, those tables and the config’s alive() are all
          that is known. Nothing refuses their late writes: a row is only written to while it is as
          it was judged.
        </p>
      )}
    </Section>
  )
}
