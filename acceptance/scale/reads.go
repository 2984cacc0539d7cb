package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const (
	// warming are reads that do not count, and counted those that do.
	warming, counted = 20, 300
	// mostRead is how many times as long as of the smallest size a read may take of the largest.
	mostRead = 2
)

// reads measures what customers ask for again and again: the account is the one with the most databases.
func (w *world) reads(ctx context.Context) (all []figure, err error) {
	err = w.withHosts(ctx, func(h hosts) error {
		api := reader{http.DefaultClient, h.api.URL + "/api/v1", w.owner.Key}
		one := string(w.rows.databases[0].id)
		deep, err := api.deep(ctx, "/databases?limit=100", 50)
		if err != nil {
			return err
		}
		browser, err := w.stack.Browser()
		if err == nil {
			err = w.stack.LogIn(ctx, h.dashboard, browser, w.owner)
		}
		if err != nil {
			return err
		}
		pages := reader{client: browser, at: h.dashboard.URL}
		for _, read := range []struct {
			what string
			from reader
			path string
		}{
			{"GET a database", api, "/databases/" + one},
			{"GET databases, a page", api, "/databases"},
			{"GET databases, a page far behind", api, deep},
			{"GET backups of a database", api, "/databases/" + one + "/backups"},
			{"dashboard, databases", pages, "/"},
			{"dashboard, databases by size, filtered", pages, "/?q=customer&sort=-size"},
			{"dashboard, a name that few have", pages, "/?q=customer+990&sort=-size"},
			{"dashboard, a database", pages, "/databases/" + one},
			{"dashboard, log of a database", pages, "/databases/" + one + "/activity"},
		} {
			median, p99, err := read.from.times(ctx, read.path)
			if err != nil {
				return fmt.Errorf("%s: %w", read.what, err)
			}
			all = append(all, took(read.what+", median", median, mostRead), took(read.what+", p99", p99, 0))
		}
		return nil
	})
	return all, err
}

// reader reads from a host, over the connections that it has.
type reader struct {
	client *http.Client
	at     string
	key    string
}

func (r reader) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.at+path, nil)
	if err != nil {
		return nil, err
	}
	if r.key != "" {
		request.Header.Set("Authorization", "Bearer "+r.key)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.200s", path, response.Status, text)
	}
	return text, err
}

func (r reader) times(ctx context.Context, path string) (median, p99 time.Duration, err error) {
	var all []time.Duration
	for n := range warming + counted {
		began := time.Now()
		if _, err := r.get(ctx, path); err != nil {
			return 0, 0, err
		}
		if n >= warming {
			all = append(all, time.Since(began))
		}
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], nil
}

// deep follows a list for so many pages, or to its last one, and returns the path of the page there.
func (r reader) deep(ctx context.Context, path string, pages int) (string, error) {
	first := path
	for range pages {
		text, err := r.get(ctx, path)
		if err != nil {
			return "", err
		}
		var page struct {
			Next string `json:"nextCursor"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return "", err
		}
		if page.Next == "" {
			break
		}
		path = first + "&cursor=" + url.QueryEscape(page.Next)
	}
	return path, nil
}
