package e2e

import (
	"bytes"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// BenchmarkRelease measures from a person's answer over the API until the command that it
// let go says what time it is, the start of date(1) included; and, beside it, what that
// start takes outside.
//
//	go test -run '^$' -bench Release -benchtime 1x ./session/e2e
func BenchmarkRelease(b *testing.B) {
	p := newPerson(b)
	p.write("agent", "for i in $(seq 50); do /bin/date +%s%N; done")
	cmd := p.command(b.Context(), "run", "--json", "--mode", "step", "--", "bash", "agent")
	var printed bytes.Buffer
	cmd.Stderr = &printed
	events, err := cmd.StdoutPipe()
	must.OK(b, err)
	must.OK(b, cmd.Start())
	var answered []time.Time
	err = new(errand).answer(b.Context(), events, func(q api.Question) (api.Answer, string) {
		if strings.HasPrefix(q.Title, "/bin/date") {
			answered = append(answered, time.Now())
		}
		return api.AnswerApprove, ""
	})
	must.OK(b, err)
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%v: %s", err, printed.Bytes())
	}
	var began []time.Time
	for _, word := range strings.Fields(printed.String()) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && len(word) == 19 {
			began = append(began, time.Unix(0, n))
		}
	}
	if len(began) != len(answered) || len(began) < 2 {
		b.Fatalf("%d answers, and %d commands said when they ran: %s", len(answered), len(began), printed.Bytes())
	}
	var inside, outside []time.Duration
	for i := range began {
		inside = append(inside, began[i].Sub(answered[i]))
		at := time.Now()
		out, err := exec.Command("/bin/date", "+%s%N").Output()
		must.OK(b, err)
		n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		must.OK(b, err)
		outside = append(outside, time.Unix(0, n).Sub(at))
	}
	for name, all := range map[string][]time.Duration{"inside": inside, "outside": outside} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*9/10].Microseconds())/1000, name+"-p90-ms")
	}
	b.ReportMetric(0, "ns/op")
}
