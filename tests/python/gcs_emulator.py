"""The emulator of Google Cloud Storage, nearer to the service in two ways: listings come in pages (the emulator
answers with everything at once), and an uploaded object may be JSON (the emulator takes the body for a request's).
Started with the emulator's own arguments."""

import sys

from gcp_storage_emulator import __main__, server
from gcp_storage_emulator.handlers import objects

whole = objects.ls
read = server._read_data


def upload_as_it_is(handler, query):
    if query.get("uploadType") == ["media"]:
        return server._decode_raw_data(server._read_raw_data(handler), handler) or b""
    return read(handler, query)


server._read_data = upload_as_it_is


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
