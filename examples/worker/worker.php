<?php
// unstuck work --exec --targets --source shop --workers 4 --drain -- php worker.php https://shop.example

/** Returns null for a target that another worker has. */
function call(string $path, array $body = []): ?array
{
    $header = ['Content-Type: application/json', 'Authorization: Bearer ' . getenv('UNSTUCK_TOKEN')];
    $http = ['method' => 'POST', 'header' => $header, 'content' => json_encode((object) $body), 'ignore_errors' => true];
    $json = file_get_contents(getenv('UNSTUCK_URL') . $path, context: stream_context_create(['http' => $http]));
    $reply = json_decode($json, true, flags: JSON_THROW_ON_ERROR);
    if (!isset($reply['error'])) return $reply;
    fwrite(STDERR, "$path: {$reply['error']['message']}\n");
    return $reply['error']['code'] === 'LEASE_LOST' ? null : exit(1);
}

function savePages(string $path, int $page, ?string $url): void
{
    for ($saved = []; $url !== null && $saved !== null; $url = $listing['next']) {
        if ($GLOBALS['stopping']) { call("$path/release"); return; }
        $listing = json_decode(@file_get_contents($url), true);
        if ($listing === null) { call("$path/fail", ['error' => "$url cannot be read"]); return; }
        $items = array_map(fn($item) => ['url' => $item['url'], 'data' => ['name' => $item['name']]], $listing['items']);
        $saved = call("$path/checkpoint", ['page' => ++$page, 'items' => $items, 'next' => $listing['next']]);
    }
}

pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () { $GLOBALS['stopping'] = true; }); // The page in progress is finished first.
$stopping = false;
if (call('/planning')['planner']) {
    $categories = json_decode(file_get_contents("$argv[1]/categories"), true)['items'];
    call('/targets', ['targets' => array_map(fn($one) => ['key' => $one['name'], 'url' => $one['url']], $categories)]);
    call('/targets/planned');
}
while (!($claimed = call('/claim', ['waitMs' => 20_000, 'single' => true]))['ended'] && !$claimed['stop']) {
    foreach ($claimed['targets'] as $one) savePages("/targets/{$one['id']}", $one['page'], $one['next'] ?? $one['url']);
}
