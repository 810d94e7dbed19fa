# Shortcuts; everything works without make too.
.PHONY: build check test race bench agents agents-latest

# Where the agents are that tests run for real, as STEPBOX_AGENTS has it there.
STEPBOX_AGENTS ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/stepbox-agents

build:
	go build -trimpath -ldflags '-s -w' -o bin/stepbox .

check:
	.ci/run

test:
	go test -timeout 30m ./...

race:
	go test -race -timeout 60m ./...

bench:
	go test -run '^$$' -bench . ./runner/... ./store/... ./session/...

# The versions are those of session/e2e/testdata/agents.txt. Two of the packages
# fetch nothing when they are installed, but put their program in its place.
agents:
	npm install --global --prefix '$(STEPBOX_AGENTS)' --no-audit --no-fund \
		--allow-scripts=@anthropic-ai/claude-code,opencode-ai $$(cat session/e2e/testdata/agents.txt)

# The newest of each, in a folder of their own; then what they are asked about.
AGENTS_LATEST = $(STEPBOX_AGENTS)-latest
agents-latest:
	npm install --global --prefix '$(AGENTS_LATEST)' --no-audit --no-fund --allow-scripts=@anthropic-ai/claude-code,opencode-ai,cline \
		@anthropic-ai/claude-code@latest @openai/codex@latest opencode-ai@latest @google/gemini-cli@latest @qwen-code/qwen-code@latest \
		@github/copilot@latest @earendil-works/pi-coding-agent@latest cline@latest @continuedev/cli@latest
	STEPBOX_AGENTS='$(AGENTS_LATEST)' go test ./session/e2e -count 1 -run TestAgentsLatest -agents-latest
