import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../kit/button.tsx'
import { CopyButton } from '../kit/copy.tsx'
import { Prose } from '../kit/text.tsx'
import { Section } from '../kit/section.tsx'
import { useLiveEvents } from '../live.ts'
import { formatLocalTime, safe } from '../model/format.ts'
import type { LogLine, LogPage } from '../shapes.ts'

/** More than this is what `unstuck logs` and the file are for. */
const KEPT = 2_000

/** The end of its log, as it grows. Follows until the reader scrolls up. Events are sentences, or as they were recorded. */
export function RunLog({ id, title }: { id: string; title: string }) {
  const [lines, setLines] = useState<readonly LogLine[]>([])
  const [because, setBecause] = useState<string | null>()
  const [isFollowing, setFollowing] = useState(true)
  const [isRaw, setRaw] = useState(false)
  const textOf = ({ text, raw }: LogLine) => (isRaw ? (raw ?? text) : text)
  const box = useRef<HTMLDivElement>(null)

  useLiveEvents<LogPage>(`log:${id}`, (page) => {
    setBecause(page.because)
    setLines((known) => (page.anew ? page.lines : [...known, ...page.lines].slice(-KEPT)))
  })

  useLayoutEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [lines, isFollowing])
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!
    setFollowing(scrollHeight - scrollTop - clientHeight < 24)
  }

  return (
    <Section
      title={title}
      aside={
        lines.length > 0 && (
          <>
            <Button
              size="small"
              kind="quiet"
              icon="down"
              isPressed={isFollowing}
              onClick={() => setFollowing(!isFollowing)}
            >
              Follow
            </Button>
            {lines.some(({ raw }) => raw !== null) && (
              <Button size="small" kind="quiet" isPressed={isRaw} onClick={() => setRaw(!isRaw)}>
                Raw events
              </Button>
            )}
            <CopyButton text={() => lines.map(textOf).join('\n')} label="Copy the lines" />
          </>
        )
      }
    >
      {lines.length === 0 ? (
        <p class="pad faint">
          <Prose
            text={
              because === undefined ? 'Looking for it …' : (because ?? 'Nothing was printed yet.')
            }
          />
        </p>
      ) : (
        <div
          class="log"
          ref={box}
          onScroll={scrolled}
          tabIndex={0}
          role="log"
          aria-label="Log of this run"
          aria-live="off"
        >
          {lines.map((line, index) => (
            <div key={index} class={`log-line log-${line.failure ? 'err' : line.stream}`}>
              <span class="faint">
                {line.at === null ? '' : formatLocalTime(Date.parse(line.at)).slice(11)}
              </span>
              <span>{safe(textOf(line))}</span>
            </div>
          ))}
        </div>
      )}
    </Section>
  )
}
