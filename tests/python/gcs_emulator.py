"""The emulator of Google Cloud Storage with listings in pages, as the service gives them: the emulator itself
answers with everything at once. Started with the emulator's own arguments."""

import sys

from gcp_storage_emulator import __main__, server
from gcp_storage_emulator.handlers import objects

whole = objects.ls


def in_pages(request, response, storage, *args, **kwargs):
    def value(name, default):
        return request.query[name][0] if request.query.get(name) else default

    start, token = value("startOffset", ""), value("pageToken", "")
    most = min(int(value("maxResults", "1000")), 1000)
    send = response.json

    def cut(answer):
        items = sorted(answer["items"], key=lambda item: item["name"].encode())
        items = [item for item in items if item["name"].encode() >= start.encode()]
        # A token says after which name the page begins.
        items = [item for item in items if not token or item["name"].encode() > token.encode()]
        answer["items"] = items[:most]
        if len(items) > most:
            answer["nextPageToken"] = items[most - 1]["name"]
        send(answer)

    response.json = cut
    whole(request, response, storage, *args, **kwargs)


server.HANDLERS = tuple(
    (pattern, {method: in_pages if handler is whole else handler for method, handler in methods.items()})
    for pattern, methods in server.HANDLERS
)
sys.exit(__main__.main())
