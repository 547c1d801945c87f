"""Reads mails (files named on the command line) with Python's own parser and prints what it finds as
JSON, one line for each, with the defects it sees."""

import email
import email.policy
import json
import sys

for path in sys.argv[1:]:
    with open(path, "rb") as file:
        mail = email.message_from_binary_file(file, policy=email.policy.default)
    found = {
        "headers": [[name, str(value)] for name, value in mail.items()],
        "to": [address.addr_spec for address in mail["to"].addresses],
        "type": mail.get_content_type(),
        "parts": [part.get_content_type() for part in mail.iter_parts()],
        "text": mail.get_body(("plain",)).get_content(),
        "html": mail.get_body(("html",)).get_content(),
        "defects": [
            repr(defect)
            for holder in [mail, *mail.walk(), *(value for _, value in mail.items())]
            for defect in holder.defects
        ],
    }
    print(json.dumps(found))
