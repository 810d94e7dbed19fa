# Shortcuts; everything works without make too.
TAGS := netgo,osusergo,sqlite_omit_load_extension

.PHONY: build check test bench

build:
	go build -tags $(TAGS) -trimpath -ldflags '-s -w' -o bin/stepbox .

check:
	.ci/run

test:
	go test -tags $(TAGS) ./...

bench:
	go test -tags $(TAGS) -run '^$$' -bench . ./runner/... ./store/... ./session/...
