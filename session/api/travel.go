package api

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
)

// KeyOf names a path of the project in requests, whatever its bytes are.
func KeyOf(path string) string { return base64.RawURLEncoding.EncodeToString([]byte(path)) }

// PathOf is the path that a key names.
func PathOf(key string) (string, error) {
	p, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return "", Problemf(CodeUsage, "%q names no file", Escape(Trim(key, 80)))
	}
	return string(p), nil
}

// File gives a file of the project as a session saw it at a moment, byte for byte:
// one that it never touched too, as far as that can be had. An answer that breaks
// off ends with an error. The caller closes it.
func (c *Client) File(ctx context.Context, id, key string, at Moment) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, path(id, "file")+"?key="+url.QueryEscape(key)+"&at="+url.QueryEscape(string(at)), nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
