# Shortcuts; everything works without make too.
.PHONY: build check test bench

build:
	go build -trimpath -ldflags '-s -w' -o bin/stepbox .

check:
	.ci/run

test:
	go test ./...

bench:
	go test -run '^$$' -bench . ./runner/... ./store/... ./session/...
