package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/acceptance/stack"
)

const (
	openStreams      = 500
	streamsOfPerson  = 20
	watchedDatabases = 50 // as many as a page of the list shows
	mostForStreams   = 150 * mebibyte
	// streamsStay is longer than it takes until each has said something.
	streamsStay = 25 * time.Second
)

// measureStreams has many pages open, each in a browser of its own, until each was told something.
func measureStreams(ctx context.Context, b *bench) ([]row, error) {
	host, err := b.stack.StartDashboard(ctx, "--max-connections-per-address", strconv.Itoa(2*openStreams))
	if err != nil {
		return nil, err
	}
	used, idle, err := b.openPages(ctx, host)
	if err = errors.Join(err, host.Kill()); err != nil {
		return nil, err
	}
	return []row{{
		measure: fmt.Sprintf("a dashboard with %d pages open, of %d databases each, against one without", openStreams,
			watchedDatabases),
		ours: used, baseline: idle, limit: "≤ " + mostForStreams.String(), met: used <= mostForStreams,
	}}, nil
}

func (b *bench) openPages(ctx context.Context, host *stack.Host) (used, idle amount, err error) {
	var people []stack.Account
	for n := range openStreams / streamsOfPerson {
		a, err := b.stack.NewAccount(ctx, fmt.Sprintf("watcher-%d", n), "business", 0)
		if err != nil {
			return 0, 0, err
		}
		people = append(people, a)
	}
	err = b.withListed(ctx, watchedDatabases, people, func(db *sql.DB) error {
		if idle, err = status(host.Pid(), "VmRSS"); err != nil {
			return err
		}
		m, err := watch(host.Pid())
		if err != nil {
			return err
		}
		err = b.keepOpen(ctx, host, db, people)
		u, ended := m.end()
		used = u.peak
		return errors.Join(err, ended)
	})
	return used, idle, err
}

// keepOpen has each of the people look at so many pages for a while.
func (b *bench) keepOpen(ctx context.Context, host *stack.Host, db *sql.DB, people []stack.Account) error {
	staying, leave := context.WithCancel(ctx)
	defer leave()
	var told errgroup.Group
	for _, who := range people {
		first, err := b.stack.Browser()
		if err == nil {
			err = b.stack.LogIn(ctx, host, first, who)
		}
		if err != nil {
			return err
		}
		own, err := stack.Column(ctx, db, "SELECT id FROM databases WHERE account_id = $1", who.ID)
		if err != nil {
			return err
		}
		at := host.URL + "/live?" + url.Values{"of": own}.Encode()
		for range streamsOfPerson {
			browser, err := b.stack.Browser() // another connection, with the same cookie
			if err != nil {
				return err
			}
			browser.Jar = first.Jar
			heard, err := listen(staying, browser, at)
			if err != nil {
				return err
			}
			told.Go(heard)
		}
	}
	time.Sleep(streamsStay)
	leave()
	return told.Wait()
}

// listen opens a stream. What it returns waits for its end, and is an error unless something was told before.
func listen(ctx context.Context, browser *http.Client, at string) (heard func() error, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		return nil, errors.Join(fmt.Errorf("a stream: %s by %s", response.Status, response.Proto), response.Body.Close())
	}
	return func() error {
		defer response.Body.Close()
		events := 0
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			switch {
			case err != nil && events == 0:
				return fmt.Errorf("a stream that was told nothing: %w", err)
			case err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF):
				return err
			case err != nil:
				return nil
			case strings.HasPrefix(line, "event: "):
				events++
			}
		}
	}, nil
}
