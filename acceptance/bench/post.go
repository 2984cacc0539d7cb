package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/webhooks"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// post is a development host, the only kind that may reach a receiver on this machine, with endpoints at one.
type post struct {
	receiver *webhooks.Receiver
	host     *stack.Dev
	client   client
	db       *sql.DB // the host's metadata
}

func newPost(ctx context.Context, b *bench) (p *post, err error) {
	dir := b.path("webhooks")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	p = &post{}
	if p.receiver, err = webhooks.Listen(b.path("receiver")); err != nil {
		return nil, err
	}
	if err := p.raise(ctx, b, dir); err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *post) raise(ctx context.Context, b *bench, dir string) (err error) {
	binary, err := stack.Build(ctx, "pgherd")
	if err != nil {
		return err
	}
	p.host, err = stack.StartDev(ctx, stack.DevOptions{
		Dir: dir, Binary: binary, Flags: []string{"--allow-private-webhooks", "--webhook-ca-file=" + p.receiver.CAFile},
	})
	if err != nil {
		return err
	}
	if p.client, err = newClient(p.host.URL, p.host.Facts["PGHERD_API_KEY"]); err != nil {
		return err
	}
	for n := range prompt {
		if _, err := p.register(ctx, "/ok/"+strconv.Itoa(n)); err != nil {
			return err
		}
	}
	p.db, err = sql.Open("postgres", p.host.Facts["PGHERD_METADATA_URL"])
	return err
}

func (p *post) close(ctx context.Context) (err error) {
	if p.db != nil {
		err = p.db.Close()
	}
	if p.host != nil && p.host.Process != nil {
		if p.host.Running() {
			err = errors.Join(err, stack.Healthy(context.WithoutCancel(ctx), p.host))
		}
		err = errors.Join(err, p.host.Stop(context.WithoutCancel(ctx)))
	}
	return errors.Join(err, p.receiver.Close())
}

func (p *post) register(ctx context.Context, path string) (id.WebhookID, error) {
	made, err := p.client.Webhooks.Create(ctx, wire.CreateWebhook{URL: p.receiver.URL + path})
	return made.ID, err
}

// figures are what one run measures at the endpoints that answer.
type figures struct {
	rate float64       // deliveries a second, when there are many events at once
	p99  time.Duration // from an event to its arrival, when there is one every now and then
}

// beside measures while there is a fiftieth endpoint of a kind. One that hangs has the whole burst before it all the time,
// which is more than there are attempts at a time.
func (p *post) beside(ctx context.Context, kind string) (f figures, err error) {
	fiftieth, err := p.register(ctx, "/"+kind+"/fiftieth")
	if err != nil {
		return f, err
	}
	if f.rate, err = p.rate(ctx); err == nil {
		f.p99, err = p.latency(ctx)
	}
	return f, errors.Join(err, p.client.Webhooks.Disable(ctx, fiftieth))
}

func (p *post) rate(ctx context.Context) (perSecond float64, err error) {
	began := time.Now()
	for range burst {
		if _, err := p.tell(ctx); err != nil {
			return 0, err
		}
	}
	if _, err := p.await(ctx, burst*prompt); err != nil {
		return 0, err
	}
	return burst * prompt / time.Since(began).Seconds(), nil
}

func (p *post) latency(ctx context.Context) (time.Duration, error) {
	told := map[string]time.Time{}
	tick := time.NewTicker(steadyPause)
	defer tick.Stop()
	for range steady {
		at := time.Now()
		id, err := p.tell(ctx)
		if err != nil {
			return 0, err
		}
		told[id] = at
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	arrived, err := p.await(ctx, steady*prompt)
	if err != nil {
		return 0, err
	}
	return percentile99(told, arrived)
}

func percentile99(told map[string]time.Time, arrived []webhooks.Received) (time.Duration, error) {
	var took []time.Duration
	for _, r := range arrived {
		var event struct{ ID string }
		if err := json.Unmarshal(r.Body, &event); err != nil {
			return 0, err
		}
		took = append(took, r.At.Sub(told[event.ID]))
	}
	slices.Sort(took)
	return took[len(took)*99/100], nil
}

// tell leaves an event behind, as the end of an operation does.
func (p *post) tell(ctx context.Context) (id string, err error) {
	id = uuid.NewString()
	const add = `INSERT INTO outbox_events (id, account_id, database_id, operation_id, request_id, name, payload, created_at)
		VALUES ($1, $2, $1, $1, '', 'backup.succeeded', $3, now()) RETURNING pg_notify('pgherd_webhooks', '')`
	_, err = p.db.ExecContext(ctx, add, id, p.host.Facts["PGHERD_ACCOUNT_ID"], eventOf(id))
	return id, err
}

// eventOf is a payload as long as they are.
func eventOf(id string) string {
	return fmt.Sprintf(`{"id":"%[1]s","event":"backup.succeeded","createdAt":"2026-01-05T09:30:00.25Z","data":{`+
		`"operationId":"%[1]s","databaseId":"%[1]s","databaseName":"shop","status":"succeeded",`+
		`"stage":"backup_verified","progress":100,"error":null}}`, id)
}

// await waits until so many requests have arrived at the endpoints that answer in every run, returns them, and
// forgets what has arrived.
func (p *post) await(ctx context.Context, n int) ([]webhooks.Received, error) {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var arrived []webhooks.Received
		p.receiver.Every(func(r webhooks.Received) {
			if !strings.HasSuffix(r.Path, "/fiftieth") {
				arrived = append(arrived, r)
			}
		})
		if len(arrived) == n {
			p.receiver.Forget()
			return arrived, nil
		}
		if len(arrived) > n {
			return nil, fmt.Errorf("%d deliveries have arrived where there should be %d", len(arrived), n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d deliveries have arrived: %w", len(arrived), n, ctx.Err())
		}
	}
}

// bareRate is how many POSTs a second reach the receiver, each on a connection of its own, without anything else.
func (p *post) bareRate(ctx context.Context) (float64, error) {
	const clients, times = 8, 250
	text, err := os.ReadFile(p.receiver.CAFile)
	if err != nil {
		return 0, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	bare := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	var group errgroup.Group
	began := time.Now()
	for range clients {
		group.Go(func() error {
			for range times {
				if err := postOnce(ctx, bare, p.receiver.URL+"/ok/bare"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	took := time.Since(began)
	p.receiver.Forget()
	return clients * times / took.Seconds(), err
}

func postOnce(ctx context.Context, c *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(eventOf(uuid.NewString())))
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
