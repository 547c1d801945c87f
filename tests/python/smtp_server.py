"""A mail server for tests, with the manners of good and bad ones.

Writes every mail it takes into --dir as N.eml, and N.envelope with five lines: sender, recipients
separated by spaces, "tls" or "plain", the user who logged in, and the number of the connection. Ends when
it is killed.
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
    parser.add_argument("--auth", metavar="REPLY", help="answer to every login")
    parser.add_argument("--mail", metavar="REPLY", help="answer to every MAIL")
    parser.add_argument("--rcpt", metavar="ADDRESS=REPLY", action="append", default=[])
    parser.add_argument("--greeting", metavar="REPLY", help="instead of 220")
    parser.add_argument("--ehlo", metavar="REPLY", help="answer to every EHLO and HELO")
    parser.add_argument("--starttls", metavar="REPLY", help="answer to every STARTTLS, which is offered")
    parser.add_argument("--data-command", metavar="REPLY", help="answer to every DATA, before the content")
    parser.add_argument("--data", metavar="REPLY", help="answer after every mail's content")
    parser.add_argument("--stall", choices=["greeting", "ehlo", "mail", "rcpt", "data"])
    parser.add_argument("--drop", choices=["greeting", "ehlo", "mail", "rcpt"], help="close the connection")
    parser.add_argument("--drop-after-data", action="store_true", help="keep every mail, close without an answer")
    parser.add_argument("--drop-first-after-data", action="store_true", help="so with the first mail alone")
    return parser.parse_args()


class Handler:
    def __init__(self, args):
        self.args = args
        self.replies = dict(rule.split("=", 1) for rule in args.rcpt)
        self.count = 0

    async def at(self, server, stage):
        """Falls silent or hangs up where that was asked for."""
        if self.args.stall == stage:
            await asyncio.sleep(3600)
        if self.args.drop == stage:
            server.transport.abort()

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        await self.at(server, "ehlo")
        session.host_name = hostname
        return [self.args.ehlo] if self.args.ehlo else responses

    async def handle_HELO(self, server, session, envelope, hostname):
        session.host_name = hostname
        return self.args.ehlo or "250 mail.test"

    async def handle_MAIL(self, server, session, envelope, address, options):
        await self.at(server, "mail")
        if self.args.mail:
            return self.args.mail
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        await self.at(server, "rcpt")
        if address in self.replies:
            return self.replies[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        await self.at(server, "data")
        if self.args.data:
            return self.args.data
        self.keep(server, session, envelope)
        if self.args.drop_after_data or (self.args.drop_first_after_data and self.count == 1):
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
            str(server.number),
        ]
        with open(path + ".writing", "w") as file:
            file.write("\n".join(lines))
        os.rename(path + ".writing", path + ".envelope")


class Server(SMTP):
    """One connection."""

    connections = 0

    def __init__(self, handler, **options):
        super().__init__(handler, **options)
        self.args = handler.args
        Server.connections += 1
        self.number = Server.connections

    async def push(self, status):
        if self.args.greeting and str(status).startswith("220 mail.test "):
            status = self.args.greeting
        await super().push(status)

    async def smtp_STARTTLS(self, arg):
        if self.args.starttls:
            await self.push(self.args.starttls)
        else:
            await super().smtp_STARTTLS(arg)

    async def smtp_AUTH(self, arg):
        if self.args.auth:
            await self.push(self.args.auth)
        else:
            await super().smtp_AUTH(arg)

    async def smtp_DATA(self, arg):
        if self.args.data_command:
            await self.push(self.args.data_command)
        else:
            await super().smtp_DATA(arg)


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


def before_greeting(args):
    async def serve(reader, writer):
        if args.stall:
            await asyncio.sleep(3600)
        writer.transport.abort()

    return serve


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
    if "greeting" in (args.stall, args.drop):
        server = await asyncio.start_server(before_greeting(args), "127.0.0.1", args.port)
    else:
        server = await loop.create_server(
            lambda: Server(handler, **options),
            "127.0.0.1",
            args.port,
            ssl=context if args.tls == "implicit" else None,
        )
    async with server:
        await server.serve_forever()


asyncio.run(main())
