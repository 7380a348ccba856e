# lab: set up, measure, collect · plan: show what would be measured · test: lint, types, unit, browser, relay, EC2 (a stand-in on loopback) and live tests
# static: the lab on hosts that it did not make · test-vm: the lab on virtual machines · situations: transfers whose limit is known, each REPEATS=n times · benchmark: how long 10,000 records take to collect
# clean: undo the lab · distclean: also its image and .venv · ARGS='...' is handed on to ansible-playbook
ARGS ?=
REPEATS ?= 1
SUDO := $(if $(filter-out 0,$(shell id -u)),$(shell command -v sudo))
# bytecode caching saves Ansible 0.8 s at each start
unexport PYTHONDONTWRITEBYTECODE
ANSIBLE := $(SUDO) .venv/bin/ansible-playbook

.PHONY: lab plan test lint unit browser benchmark relay aws molecule static test-vm situations clean distclean
lab: .venv/.ready
	@$(ANSIBLE) lab.yml $(ARGS)

plan: .venv/.ready
	@.venv/bin/ansible-playbook playbooks/plan.yml $(ARGS)

test: lint unit browser benchmark relay aws molecule static situations

lint: .venv/.dev
	.venv/bin/ruff check && .venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/yamllint --strict .
	PATH="$(CURDIR)/.venv/bin:$$PATH" ansible-lint --offline --strict

unit: .venv/.dev
	.venv/bin/pytest tests/unit

browser: .venv/.dev
	.venv/bin/pytest tests/browser

relay: .venv/.dev
	$(SUDO) .venv/bin/pytest tests/relay

aws: .venv/.dev
	.venv/bin/pytest tests/aws

molecule: .venv/.dev
	$(SUDO) env PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/molecule test

static: .venv/.dev
	$(SUDO) .venv/bin/pytest tests/static

test-vm: .venv/.dev
	./setup.sh --dev --vm
	$(SUDO) .venv/bin/pytest tests/vm

situations: .venv/.dev
	$(SUDO) .venv/bin/pytest tests/situations -s --repeats $(REPEATS)

benchmark: .venv/.dev
	.venv/bin/pytest tests/benchmark -s

clean: .venv/.ready
	@$(ANSIBLE) playbooks/teardown.yml $(ARGS)

distclean: .venv/.ready
	@$(ANSIBLE) playbooks/teardown.yml -e teardown_images=true $(ARGS)
	$(SUDO) rm -rf .venv .ansible tunnel_lab.egg-info

.venv/.ready: setup.sh requirements.txt constraints.txt pyproject.toml
	@./setup.sh && touch $@

.venv/.dev: .venv/.ready requirements-dev.txt
	@./setup.sh --dev && touch $@
