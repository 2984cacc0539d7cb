package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// tracedSlices are for a difference of a few percent, of which noise is more in fewer.
const tracedSlices = 4 * slicesPerRun

// measureTraced reads one database over and over from an API host that keeps traces and from one that does not. The collector
// takes all, and does nothing with it.
func measureTraced(ctx context.Context, b *bench) ([]row, error) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a batch that breaks off is lost, and nothing here depends on it
	}))
	defer collector.Close()
	made, err := b.client.create(ctx, "read-me-traced")
	if err != nil {
		return nil, err
	}
	plain := target{
		address: strings.TrimPrefix(b.api.URL, "http://"), path: "/api/v1/databases/" + string(made.ID), keys: []string{b.account.Key},
	}
	for len(plain.keys) < readKeys {
		key, err := b.stack.NewKey(ctx, b.account)
		if err != nil {
			return nil, err
		}
		plain.keys = append(plain.keys, key)
	}
	var rows []row
	for _, c := range []struct {
		share string
		least float64
	}{{"0.01", 0.95}, {"1", 0}} {
		traced, err := b.stack.StartAPI(ctx, "", "--traces-endpoint="+collector.URL, "--traces-share="+c.share)
		if err != nil {
			return nil, err
		}
		ours := plain
		ours.address = strings.TrimPrefix(traced.URL, "http://")
		r, err := compareRates(ctx, b.runs*tracedSlices, ours, plain)
		if err != nil {
			return nil, err
		}
		if err := traced.Kill(); err != nil {
			return nil, err
		}
		one := row{
			fmt.Sprintf("GET /databases/{id} with traces of a share of %s, against none", c.share),
			rate(r.ours), rate(r.baseline), r.ratio, "", true,
		}
		if c.least > 0 {
			one.limit, one.met = fmt.Sprintf("≥ %.2f", c.least), r.ratio >= c.least
		}
		rows = append(rows, one)
	}
	return rows, nil
}
