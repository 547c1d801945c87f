# The development commands. Each is a short script or a cargo command; nothing here is magic.

.PHONY: demo test setup check rust-test client-test local-models-test

# Builds, starts a server and runs the files of examples/ through it.
demo:
	scripts/setup --programs-only
	scripts/demo

# Everything that must pass before a change goes in.
test: setup check rust-test client-test local-models-test

# Installs what the tests need, where it may.
setup:
	scripts/setup

# Format and lints.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# All Rust tests, those that start the real server among them.
rust-test:
	cargo build --workspace --locked
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace --locked --no-fail-fast && cargo test --workspace --locked --doc; \
	else \
		cargo test --workspace --locked --no-fail-fast; \
	fi

# Sentence models run by ONNX Runtime: a build with the feature local-models, which is not part of the usual one.
local-models-test: setup
	@if [ -f .venv/installed-models ]; then \
		cargo test -p docmill-providers -p docmill --locked \
			--features docmill/local-models,docmill-providers/local-models local; \
	else \
		echo "no ONNX Runtime for this Python: local sentence models are not tested here"; \
	fi

# The public Python client against the server.
client-test:
	cargo build -p docmill --locked
	.venv/bin/python tests/python/test_client.py
