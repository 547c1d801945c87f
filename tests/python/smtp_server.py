"""A mail server for tests, with the manners of good and bad ones.

Writes every mail it takes into --dir as N.eml, and N.envelope with four lines: sender, recipients
separated by spaces, "tls" or "plain", and the user who logged in. Ends when it is killed.
"""

import argparse
import asyncio
import os
import ssl

from aiosmtpd.smtp import SMTP, AuthResult


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--tls", choices=["none", "starttls", "implicit"], default="none")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--login", help="USER:PASSWORD, then nobody may send without")
    parser.add_argument("--mail", metavar="REPLY", help="answer to every MAIL")
    parser.add_argument("--rcpt", metavar="ADDRESS=REPLY", action="append", default=[])
    parser.add_argument("--ehlo", metavar="REPLY", help="answer to every EHLO")
    parser.add_argument("--data-command", metavar="REPLY", help="answer to every DATA, before the content")
    parser.add_argument("--data", metavar="REPLY", help="answer after every mail's content")
    parser.add_argument("--stall", choices=["greeting", "ehlo", "mail", "rcpt", "data"])
    parser.add_argument("--drop", choices=["greeting", "ehlo", "mail", "rcpt"], help="close the connection there")
    parser.add_argument("--drop-after-data", action="store_true", help="keep every mail, close without an answer")
    parser.add_argument("--drop-first-after-data", action="store_true", help="so with the first mail alone")
    return parser.parse_args()


class Handler:
    def __init__(self, args):
        self.args = args
        self.replies = dict(rule.split("=", 1) for rule in args.rcpt)
        self.count = 0

    async def handle_MAIL(self, server, session, envelope, address, options):
        if self.args.mail:
            return self.args.mail
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.args.stall == "rcpt":
            await asyncio.sleep(3600)
        if address in self.replies:
            return self.replies[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if self.args.stall == "data":
            await asyncio.sleep(3600)
        if self.args.data:
            return self.args.data
        self.keep(server, session, envelope)
        if self.args.drop_after_data:
            server.transport.abort()
        return f"250 OK queued as {self.count}"

    def keep(self, server, session, envelope):
        self.count += 1
        path = os.path.join(self.args.dir, f"{self.count:04}")
        with open(path + ".eml", "wb") as file:
            file.write(envelope.original_content)
        encrypted = server.transport.get_extra_info("sslcontext") is not None
        lines = [
            envelope.mail_from,
            " ".join(envelope.rcpt_tos),
            "tls" if encrypted else "plain",
            session.auth_data or "",
        ]
        with open(path + ".writing", "w") as file:
            file.write("\n".join(lines))
        os.rename(path + ".writing", path + ".envelope")


def authenticator(login):
    user, password = login.split(":", 1)

    def check(server, session, envelope, mechanism, data):
        good = data.login == user.encode() and data.password == password.encode()
        if good:
            return AuthResult(success=True, auth_data=user)
        # Some servers repeat what they were told.
        message = f"535 5.7.8 wrong: {data.login.decode()} {data.password.decode()}"
        return AuthResult(success=False, handled=False, message=message)

    return check


async def silent(reader, writer):
    await asyncio.sleep(3600)


async def main():
    args = arguments()
    context = None
    if args.tls != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(args.cert, args.key)
    options = {"hostname": "mail.test", "enable_SMTPUTF8": False}
    if args.tls == "starttls":
        options.update(tls_context=context, require_starttls=True)
    if args.login:
        options.update(
            authenticator=authenticator(args.login),
            auth_required=True,
            # The server knows of encryption by STARTTLS alone; with TLS from the first byte there is no other way in.
            auth_require_tls=args.tls == "starttls",
        )
    handler = Handler(args)
    loop = asyncio.get_running_loop()
    if args.stall == "greeting":
        server = await asyncio.start_server(silent, "127.0.0.1", args.port)
    else:
        server = await loop.create_server(
            lambda: SMTP(handler, **options),
            "127.0.0.1",
            args.port,
            ssl=context if args.tls == "implicit" else None,
        )
    async with server:
        await server.serve_forever()


asyncio.run(main())
