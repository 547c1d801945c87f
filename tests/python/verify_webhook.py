"""Verifies a request's signature with the public library. Reads a JSON object from standard input: secret,
raw (the secret's own bytes are the key), headers, body; prints "good" or the library's reason."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

request = json.load(sys.stdin)
secret = request["secret"].encode() if request["raw"] else request["secret"]
try:
    Webhook(secret).verify(request["body"], request["headers"])
    print("good")
except WebhookVerificationError as error:
    print(f"refused: {error}")
