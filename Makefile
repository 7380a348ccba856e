# lab: set up, measure, collect · test: lint, types, unit tests, molecule · clean: undo the lab · distclean: also its caches
ARGS ?=
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
# bytecode caching saves Ansible 0.8 s at each start
unexport PYTHONDONTWRITEBYTECODE
ANSIBLE := $(SUDO) .venv/bin/ansible-playbook

.PHONY: lab plan test lint unit relay molecule clean distclean
lab: .venv/.ready
	@$(ANSIBLE) lab.yml $(ARGS)

plan: .venv/.ready
	@.venv/bin/ansible-playbook playbooks/plan.yml $(ARGS)

test: lint unit relay molecule

lint: .venv/.dev
	.venv/bin/ruff check && .venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/yamllint --strict .
	PATH="$(CURDIR)/.venv/bin:$$PATH" ansible-lint --offline --strict

unit: .venv/.dev
	.venv/bin/pytest tests/unit

relay: .venv/.dev
	$(SUDO) .venv/bin/pytest tests/relay

molecule: .venv/.dev
	$(SUDO) env PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/molecule test

clean:
	@if [ -x .venv/bin/ansible-playbook ]; then $(ANSIBLE) playbooks/teardown.yml $(ARGS); fi

distclean: clean
	@if [ -x .venv/bin/ansible-playbook ]; then $(ANSIBLE) playbooks/teardown.yml -e teardown_images=true $(ARGS); fi
	$(SUDO) rm -rf .venv .lab .ansible

.venv/.ready: setup.sh requirements.txt constraints.txt pyproject.toml
	@./setup.sh && touch $@

.venv/.dev: .venv/.ready requirements-dev.txt
	@./setup.sh --dev && touch $@
