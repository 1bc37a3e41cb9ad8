import { useCompletedActions } from '../kit/actions.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Link } from '../kit/link.tsx'
import { Position } from '../kit/position.tsx'
import { Facts, Section } from '../kit/section.tsx'
import { Loaded } from '../kit/states.tsx'
import { Age, Text } from '../kit/text.tsx'
import { safe } from '../model/format.ts'
import { useResource } from '../resource.ts'
import type { Execution, Page, RunDetail, Target } from '../shapes.ts'

/** The command of a run: how it was started last, and how that ended. */
export function RunCommand({ of }: { of: Execution }) {
  const { commandLine, summary, host, startedAt, outputDir } = of
  return (
    <Section title="Command">
      <div class="pad stack">
        <CopyCommand command={commandLine} />
        <Facts
          of={[
            ['State', <Text value={summary} />],
            ['Started', <Age at={startedAt} />],
            ['Host', <Text value={host} />],
          ]}
          wide={[['Files', <Text value={outputDir} mono />]]}
        />
      </div>
    </Section>
  )
}

const REFRESH_MS = 5_000

/** The position of the only target of a run, in place of a list with one row. */
export function OnlyTarget({ run }: Pick<RunDetail, 'run'>) {
  const targets = useResource<Page<Target>>(`/api/runs/${run.id}/targets?limit=1`, {
    version: useCompletedActions(),
    ...(run.health !== null && { refreshMs: REFRESH_MS }),
  })
  return (
    <Loaded of={targets}>
      {({ items: [target] }) =>
        target ? (
          <Position
            target={target}
            aside={
              <Link to={`/targets/${target.id}`}>
                Its target <span class="visually-hidden">{safe(target.key)}</span>
              </Link>
            }
          />
        ) : null
      }
    </Loaded>
  )
}
