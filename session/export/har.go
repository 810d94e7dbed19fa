package export

import (
	"cmp"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"stepbox/session/api"
	"stepbox/session/redact"
	"stepbox/store"
)

// obj is an object of JSON in a form that others define. Here of a HAR file, version 1.2 (http://www.softwareishard.com/blog/har-12-spec/).
// Connections are seen from outside, so that of most fields it is only known that
// they aren't: -1 where the format has that, else empty, and a comment says so.
type obj = map[string]any

// har writes the network attempts.
func (r *run) har() error {
	if _, err := r.out.WriteString(`{"log":{"version":"1.2","creator":`); err != nil {
		return err
	}
	if err := r.json(obj{"name": "Stepbox", "version": cmp.Or(r.s.Stepbox, "unknown")}); err != nil {
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

func entryOf(a api.Attempt) obj {
	ms := float64(a.Duration.Microseconds()) / 1000
	said := func(more obj) obj { // what of a request and a response isn't known
		none := []obj{}
		maps.Copy(more, obj{"httpVersion": "unknown", "cookies": none, "headers": none, "headersSize": -1, "bodySize": -1})
		return more
	}
	text, comment := "", "the status isn't known"
	if a.Verdict == api.Deny {
		text, comment = "refused", ""
	}
	e := obj{
		"startedDateTime": a.At, "time": ms, "cache": obj{}, "timings": obj{"send": 0, "wait": 0, "receive": ms}, "comment": attempted(a),
		"_protocol": a.Protocol, "_verdict": a.Verdict, "_bytesSent": a.Sent, "_bytesReceived": a.Received,
		"request": said(obj{"method": "CONNECT", "url": urlOf(a), "queryString": []obj{}}),
		"response": said(obj{"status": 0, "statusText": text, "redirectURL": "", "comment": comment, "content": obj{
			"size": 0, "mimeType": "x-unknown", "comment": "not known: " + strconv.FormatInt(a.Received, 10) + " bytes came, headers and encryption included",
		}}),
	}
	if a.Action != 0 {
		e["_action"] = a.Action
	}
	if ip, err := netip.ParseAddrPort(a.Resolved); err == nil {
		e["serverIPAddress"] = ip.Addr().String()
	} else if ip, err := netip.ParseAddr(a.Resolved); err == nil {
		e["serverIPAddress"] = ip.String()
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
	host := a.Host()
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
