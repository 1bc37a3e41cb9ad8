import type { Facts, Supervisor } from './facts.ts'

const PATH = 'unstuck-clean.xml'

export const windows: Supervisor = {
  files: (facts) => [
    {
      path: PATH,
      text: task(facts),
      about: "cleans every night, by Windows' Task Scheduler",
      // schtasks takes no UTF-8.
      utf16: true,
    },
  ],
  next: ({ name }) => [`schtasks /Create /TN ${name}-clean /XML ${PATH}`],
}

function task({ folder, name, node, binFromFolder, user }: Facts): string {
  return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Cleans up ${xml(name)} every night: runs that are dead are marked, none is deleted.</Description>
  </RegistrationInfo>
  <Triggers>
    <CalendarTrigger>
      <StartBoundary>2026-01-01T03:00:00</StartBoundary>
      <Enabled>true</Enabled>
      <ScheduleByDay>
        <DaysInterval>1</DaysInterval>
      </ScheduleByDay>
    </CalendarTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${xml(user)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT1H</ExecutionTimeLimit>
    <Enabled>true</Enabled>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>cmd.exe</Command>
      <Arguments>${xml(commandLine(node, binFromFolder))}</Arguments>
      <WorkingDirectory>${xml(folder)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`
}

/** Through cmd, for the log. With paths from the working directory on, so that its name, however odd, is not read by cmd. */
function commandLine(node: string, bin: string): string {
  const log = String.raw`>> .unstuck\clean.log 2>&1`
  return `/d /s /c "(if not exist .unstuck mkdir .unstuck) & "${node}" "${bin}" clean --auto ${log}"`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

function xml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (letter) => ENTITIES[letter]!)
}
