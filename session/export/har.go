package export

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/session/redact"
	"stepbox/store"
)

// What a HAR file has, version 1.2 (http://www.softwareishard.com/blog/har-12-spec/).
// Connections are seen from outside, so that of most fields it is only known that
// they aren't: -1 where the format has that, else empty, and a comment says so.
type (
	harCreator struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harEntry struct {
		Started  time.Time   `json:"startedDateTime"`
		Time     float64     `json:"time"` // milliseconds
		Request  harRequest  `json:"request"`
		Response harResponse `json:"response"`
		Cache    struct{}    `json:"cache"`
		Timings  harTimings  `json:"timings"`
		Server   string      `json:"serverIPAddress,omitempty"`
		Comment  string      `json:"comment"`
		Action   int         `json:"_action,omitempty"`
		Protocol string      `json:"_protocol"`
		Verdict  api.Verdict `json:"_verdict"`
		Sent     int64       `json:"_bytesSent"`
		Received int64       `json:"_bytesReceived"`
	}
	harRequest struct {
		Method  string     `json:"method"`
		URL     string     `json:"url"`
		Version string     `json:"httpVersion"`
		Cookies []struct{} `json:"cookies"`
		Headers []struct{} `json:"headers"`
		Query   []struct{} `json:"queryString"`
		harSizes
	}
	harResponse struct {
		Status  int        `json:"status"`
		Text    string     `json:"statusText"`
		Version string     `json:"httpVersion"`
		Cookies []struct{} `json:"cookies"`
		Headers []struct{} `json:"headers"`
		Content harContent `json:"content"`
		To      string     `json:"redirectURL"`
		harSizes
		Comment string `json:"comment,omitempty"`
	}
	// harSizes is what a request and a response are both said not to have.
	harSizes struct {
		Head int `json:"headersSize"`
		Body int `json:"bodySize"`
	}
	harContent struct {
		Size    int    `json:"size"`
		Type    string `json:"mimeType"`
		Comment string `json:"comment"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

// har writes the network attempts.
func (r *run) har() error {
	if _, err := r.out.WriteString(`{"log":{"version":"1.2","creator":`); err != nil {
		return err
	}
	if err := r.json(harCreator{"Stepbox", cmp.Or(r.s.Stepbox, "unknown")}); err != nil {
		return err
	}
	comment := "Network attempts of session " + r.s.ID + ", seen from outside: what was said in them isn't known."
	if _, err := r.out.WriteString(`,"comment":` + strconv.Quote(comment) + `,"entries":[` + "\n"); err != nil {
		return err
	}
	before := ""
	err := each(r, store.KindAttempt, func(a api.Attempt) int64 { return a.ID }, func(a api.Attempt) error {
		if _, err := r.out.WriteString(before); err != nil {
			return err
		}
		before = ","
		return r.json(entryOf(a))
	})
	if err == nil {
		_, err = r.out.WriteString("]}}\n")
	}
	return err
}

func entryOf(a api.Attempt) harEntry {
	none := []struct{}{}
	ms := float64(a.Duration.Microseconds()) / 1000
	e := harEntry{
		Started: a.At, Time: ms, Timings: harTimings{0, 0, ms}, Action: a.Action, Protocol: a.Protocol, Verdict: a.Verdict,
		Sent: a.Sent, Received: a.Received, Comment: attempted(a),
		Request:  harRequest{"CONNECT", urlOf(a), "unknown", none, none, none, harSizes{-1, -1}},
		Response: harResponse{Version: "unknown", Cookies: none, Headers: none, harSizes: harSizes{-1, -1}},
	}
	e.Response.Content = harContent{0, "x-unknown", "not known: " + strconv.FormatInt(a.Received, 10) + " bytes came, headers and encryption included"}
	if a.Verdict == api.Deny {
		e.Response.Text = "refused"
	} else {
		e.Response.Comment = "the status isn't known"
	}
	if ip, err := netip.ParseAddrPort(a.Resolved); err == nil {
		e.Server = ip.Addr().String()
	} else if ip, err := netip.ParseAddr(a.Resolved); err == nil {
		e.Server = ip.String()
	}
	return e
}

// attempted says in words who tried what.
func attempted(a api.Attempt) string {
	words := []string{a.Protocol, string(a.Verdict), "by " + cmp.Or(a.Program, "an unknown program")}
	for _, w := range []string{a.Rule, a.Failure} {
		if w != "" {
			words = append(words, w)
		}
	}
	if a.Open {
		words = append(words, "it was still open")
	}
	return strings.Join(words, ", ")
}

// urlOf is an attempt's address, with a scheme that its port suggests. What is
// redacted in it stands where no address may have such words.
func urlOf(a api.Attempt) string {
	host := cmp.Or(a.Name, a.Address)
	if strings.Contains(host, redact.Mark) {
		host = "redacted.invalid"
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch {
	case a.Protocol == "tcp" && a.Port == 443:
		return "https://" + host + "/"
	case a.Protocol == "tcp" && a.Port == 80:
		return "http://" + host + "/"
	case a.Port > 0:
		host += ":" + strconv.Itoa(a.Port)
	}
	return a.Protocol + "://" + host
}
