import { act } from '../../kit/act.tsx'
import { clean } from '../../kit/actions.ts'
import { Age } from '../../kit/age.tsx'
import { Button } from '../../kit/button.tsx'
import { evidenceSentences } from '../../kit/evidence.ts'
import { Link } from '../../kit/link.tsx'
import { Section } from '../../kit/section.tsx'
import { sentence } from '../../kit/sentence.ts'
import { Empty } from '../../kit/states.tsx'
import { Status } from '../../kit/status.tsx'
import { Text } from '../../kit/text.tsx'
import { counted, number, rowWords, shortId } from '../../model/format.ts'
import { useMay } from '../../session.ts'
import type { Cleaning, JudgedRun } from '../../shapes.ts'

/** Side by side: what is kept because it can go on, and what is dead because it cannot. */
export function ResumableAndDead({ of: { resumable, dead } }: { of: Cleaning }) {
  return (
    <div class="columns side-by-side">
      <Section title="Resumable" note={counted(resumable.length, 'run')}>
        {resumable.length === 0 ? (
          <Empty title="No run waits to be taken up again." icon="play" />
        ) : (
          <ul class="judged">
            {resumable.map((run) => (
              <Judged key={run.id} run={run} />
            ))}
          </ul>
        )}
      </Section>
      <Section title="Dead" note={counted(dead.length, 'run')}>
        {dead.length === 0 ? (
          <Empty title="No run is dead.">
            Dead is what nobody works on, is old, and has nothing to go on from.
          </Empty>
        ) : (
          <ul class="judged">
            {dead.map((run) => (
              <Judged key={run.id} run={run} isDead />
            ))}
          </ul>
        )}
      </Section>
    </div>
  )
}

function Judged({ run, isDead = false }: { run: JudgedRun; isDead?: boolean }) {
  const may = useMay('operator')
  const { id, source, status, because, done, total, checkpoint, lastActivityAt, adopted } = run
  return (
    <li class="judged-run" data-row tabIndex={-1}>
      <div class="deed-head">
        <Status is={status} />
        <Link to={`/runs/${id}`} class="deed-what">
          <Text value={source} />
        </Link>
        <span class="faint mono small">{shortId(id)}</span>
        {adopted && (
          <span class="faint small">
            <Text value={rowWords(adopted)} />
          </span>
        )}
        {isDead && may && (
          <span class="judged-action">
            <Button size="small" icon="broom" onClick={() => act(clean({ runs: [id] }))}>
              Clean
            </Button>
          </span>
        )}
      </div>
      <p class="deed-because">
        <Text value={sentence(because)} />
      </p>
      <p class="faint small">
        {number(done)} of {number(total)} done
        {checkpoint && `, ${savedWords(checkpoint.page)}`} · last change <Age at={lastActivityAt} />
      </p>
      <details class="deed-evidence">
        <summary>The evidence</summary>
        <p>
          <Text value={evidenceSentences(run.evidence).join(' ')} />
        </p>
      </details>
    </li>
  )
}

/** What is saved without pages, such as a file, is a checkpoint too. */
function savedWords(page: number): string {
  return page > 0 ? `saved up to page ${number(page)}` : 'with a checkpoint'
}
