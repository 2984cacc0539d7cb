package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
)

const (
	accounts       = 40
	keysOfOne      = 5
	databasesOfOne = 5
	makingAtOnce   = 4
)

// world is an installation with its customers.
type world struct {
	*stack.Measured
	api    *stack.Host
	client *fasthttp.Client
	owners []owner
	logins []login
}

// login is how a client reaches a database.
type login struct{ entry, username, password string }

func newWorld(ctx context.Context) (*world, error) {
	w := &world{client: &fasthttp.Client{
		MaxConnsPerHost: mostOpen, MaxIdleConnDuration: time.Minute, NoDefaultUserAgentHeader: true,
		RetryIf: func(*fasthttp.Request) bool { return false }, //nolint:staticcheck // no request is sent twice
	}}
	var err error
	if w.Measured, err = stack.StartMeasured(ctx, "load"); err != nil {
		return w, err
	}
	if _, err := w.StartBatch(ctx, ""); err != nil {
		return w, err
	}
	if err := w.startAPI(ctx); err != nil {
		return w, err
	}
	return w, w.enter(ctx)
}

// startAPI starts the API host. One address has all the connections, and one process sends what many do.
func (w *world) startAPI(ctx context.Context, extra ...string) (err error) {
	w.api, err = w.StartAPI(ctx, "", append([]string{
		"--max-connections", strconv.Itoa(2*mostOpen + 2000), "--max-connections-per-address", strconv.Itoa(mostOpen + 1000),
	}, extra...)...)
	return err
}

// limit starts the API host anew, with rate limits of keys that have room for twice as many requests a second of all.
func (w *world) limit(ctx context.Context, requests int) error {
	if err := w.api.Kill(); err != nil {
		return err
	}
	const period = 20 // seconds
	each := max(1, 2*period*requests/len(w.owners))
	return w.startAPI(ctx, "--rate-limits", fmt.Sprintf("read=%d/%ds,write=1000000/1m", each, period))
}

// enter makes the customers.
func (w *world) enter(ctx context.Context) error {
	for n := range accounts {
		a, err := w.NewAccount(ctx, "customer"+strconv.Itoa(n), "business", databasesOfOne)
		if err != nil {
			return err
		}
		client, err := stack.Client(w.api.URL, a.Key, nil)
		if err != nil {
			return err
		}
		made := make([]string, databasesOfOne)
		logins := make([]login, databasesOfOne)
		var group errgroup.Group
		group.SetLimit(makingAtOnce)
		for i := range made {
			group.Go(func() error {
				name, model := fmt.Sprintf("shop-%d-%d", n, i), database.SingleLogin
				one, err := client.Databases.Create(ctx, wire.CreateDatabase{
					Name: name, DisplayName: "The shop", RoleModel: &model,
				})
				if err == nil {
					made[i], logins[i] = string(one.ID), login{name, one.Username, one.Password}
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		w.logins = append(w.logins, logins...)
		w.owners = append(w.owners, owner{a.Key, made})
		for range keysOfOne - 1 {
			key, err := w.NewKey(ctx, a)
			if err != nil {
				return err
			}
			w.owners = append(w.owners, owner{key, made})
		}
	}
	return nil
}

// holding is what a host holds.
type holding struct{ goroutines, files, bytes float64 }

func (h holding) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f files and %.0f MB of heap", h.goroutines, h.files, h.bytes/1e6)
}

// settle is what a host needs to let go of what it had under way, with the connections that stand idle.
const settle = 90 * time.Second

// held reads what the API host holds, once no connection of the senders is open.
func (w *world) held(ctx context.Context) (h holding, err error) {
	w.client.CloseIdleConnections()
	if err := sleep(ctx, settle); err != nil {
		return h, err
	}
	text, err := w.api.Metrics(ctx)
	if err != nil {
		return h, err
	}
	for name, to := range map[string]*float64{
		"go_goroutines": &h.goroutines, "process_open_fds": &h.files, "go_memstats_heap_inuse_bytes": &h.bytes,
	} {
		line := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if line == nil {
			return h, fmt.Errorf("the API host has no metric %s", name)
		}
		if *to, err = strconv.ParseFloat(line[1], 64); err != nil {
			return h, err
		}
	}
	return h, nil
}

// grownFrom is an error where a host holds much more than before.
func (h holding) grownFrom(before holding) error {
	const some, megabytes = 50, 64e6
	if h.goroutines > before.goroutines+some || h.files > before.files+some || h.bytes > before.bytes+megabytes {
		return fmt.Errorf("the API host has grown from %s to %s", before, h)
	}
	return nil
}
