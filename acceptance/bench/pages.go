package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/id"
)

const (
	listedDatabases = 10_000
	countedPages    = 400 // of each kind in each run
	mostPageMedian  = 5 * time.Millisecond
	mostPageP99     = 25 * time.Millisecond
)

// listed gives an account many databases that only the metadata knows, each with a week of backups. Their sizes are new, so that
// no agent is asked for them.
const listed = `WITH made AS (
		INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status, created_at,
			connection_cap, size_bytes, sized_at, access_generation, allowlist_generation, allowlist_applied)
		SELECT gen_random_uuid(), $1::text::uuid, s.id, 'listed-' || substr($1, 1, 8) || '-' || n, 'The shop of customer ' || n,
			'managed', (ARRAY['', 'production', 'staging', 'development', 'other'])[n % 5 + 1], 'none',
			(ARRAY['active', 'active', 'active', 'stopped'])[n % 4 + 1], now() - n * interval '1 minute', 20,
			(n * 7919 % 1000 + 8) * 1048576, now() + interval '1 hour', 0, 0, 0
		FROM servers s, generate_series(1, $2::integer) n WHERE s.name = 'first' RETURNING id)
	INSERT INTO backups (database_id, filename, operation_id, trigger, format, size_bytes, checksum_sha256, created_at, verified_at,
		role_manifest)
	SELECT id, d || '.sql.gz', gen_random_uuid(), 'scheduled', 'sql.gz', 1, '', now() - d * interval '1 day', now(), true
	FROM made, generate_series(1, 7) d`

// unlisted takes them away again.
var unlisted = []string{
	"DELETE FROM backups WHERE database_id IN (SELECT id FROM databases WHERE name LIKE 'listed-%')",
	"DELETE FROM databases WHERE name LIKE 'listed-%'",
}

// withListed does something while accounts have so many databases each.
func (b *bench) withListed(ctx context.Context, n int, of []stack.Account, do func(*sql.DB) error) (err error) {
	db, err := sql.Open("postgres", b.stack.MetadataURL())
	if err != nil {
		return err
	}
	defer func() {
		for _, statement := range unlisted {
			_, away := db.ExecContext(context.WithoutCancel(ctx), statement)
			err = errors.Join(err, away)
		}
		err = errors.Join(err, db.Close())
	}()
	for _, a := range of {
		if _, err := db.ExecContext(ctx, listed, a.ID, n); err != nil {
			return err
		}
	}
	if _, err := db.ExecContext(ctx, "VACUUM ANALYZE databases, backups"); err != nil { // as autovacuum does
		return err
	}
	return do(db)
}

// measurePages reads pages as a browser does, over the connection that it has, one after the other. How long each took the host
// says.
func measurePages(ctx context.Context, b *bench) (rows []row, err error) {
	host, err := b.stack.StartDashboard(ctx)
	if err != nil {
		return nil, err
	}
	one, err := b.client.create(ctx, "show-me")
	if err != nil {
		return nil, err
	}
	browser, err := b.stack.Browser()
	if err == nil {
		err = b.stack.LogIn(ctx, host, browser, b.account)
	}
	if err != nil {
		return nil, err
	}
	err = b.withListed(ctx, listedDatabases, []stack.Account{b.account}, func(*sql.DB) error {
		rows, err = b.pages(ctx, browser, host, one.ID)
		return err
	})
	return rows, errors.Join(err, host.Kill())
}

func (b *bench) pages(ctx context.Context, browser *http.Client, host *stack.Host, one id.DatabaseID) (rows []row, err error) {
	const filtered = "/?q=customer+7&environment=production&sort=-size"
	ways := []struct{ what, path string }{
		{"the list", "/"}, {"the list, next page", "/"},
		{"the list by name", "/?sort=name"},
		{"the list, filtered and by size", filtered}, {"the list, filtered and by size, next page", filtered},
		{"the list, of a name that few have", "/?q=customer+9999&sort=-size"},
		{"the overview of a database", "/databases/" + string(one)},
	}
	for i, w := range ways {
		if i > 0 && w.path == ways[i-1].path {
			if w.path, err = nextPage(ctx, browser, host.URL, w.path); err != nil {
				return nil, err
			}
		}
		const warming = countedPages / 10
		took, err := tookOf(ctx, host, countedPages*b.runs+warming, func() error {
			_, err := page(ctx, browser, host.URL+w.path)
			return err
		})
		if err != nil {
			return nil, err
		}
		took = slices.Sorted(slices.Values(took[warming:]))
		p := quantiles{took[len(took)/2], took[len(took)*99/100]}
		rows = append(rows, row{
			measure: fmt.Sprintf("%s, with %d databases (median / p99)", w.what, listedDatabases), ours: p,
			limit: "≤ " + quantiles{mostPageMedian, mostPageP99}.String(), met: p.median <= mostPageMedian && p.p99 <= mostPageP99,
		})
	}
	return rows, nil
}

var tookSeconds = regexp.MustCompile(`"msg":"page".*"took":([0-9.e-]+)`)

// tookOf has a page shown so often, and returns how long the host says that each took.
func tookOf(ctx context.Context, host *stack.Host, times int, show func() error) (took []time.Duration, err error) {
	before, err := host.Log()
	if err != nil {
		return nil, err
	}
	for range times {
		if err := show(); err != nil {
			return nil, err
		}
	}
	for len(took) < times { // it says so after it has answered
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := host.Log()
		if err != nil {
			return nil, err
		}
		took = nil
		for _, found := range tookSeconds.FindAllSubmatch(text[len(before):], -1) {
			seconds, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil {
				return nil, err
			}
			took = append(took, time.Duration(seconds*float64(time.Second)))
		}
	}
	return took, nil
}

// quantiles are those of many times.
type quantiles struct{ median, p99 time.Duration }

func (q quantiles) String() string { return span(q.median).String() + " / " + span(q.p99).String() }

func page(ctx context.Context, browser *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return text, errors.Join(err, response.Body.Close())
}

var onward = regexp.MustCompile(`href="([^"]*[?&;]after=[^"]*)"`)

func nextPage(ctx context.Context, browser *http.Client, url, path string) (string, error) {
	text, err := page(ctx, browser, url+path)
	if err != nil {
		return "", err
	}
	found := onward.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("the page %s has no next one", path)
	}
	return html.UnescapeString(string(found[1])), nil
}
