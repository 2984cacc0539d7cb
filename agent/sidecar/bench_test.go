package sidecar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
)

// BenchmarkManyTables is about a managed database with 10,000 tables, each with an index, a sequence and a comment, one in ten
// of the runtime's. It says how long the owners and privileges take, and how long the comparison.
func BenchmarkManyTables(b *testing.B) {
	w := newWorld(b)
	w.load(`SET SESSION AUTHORIZATION shop; GRANT CREATE ON SCHEMA public TO shop_rt; RESET SESSION AUTHORIZATION;
		SELECT format('SET SESSION AUTHORIZATION %I; CREATE TABLE public.t%s (id serial PRIMARY KEY, note text CHECK (note <> ''''));
			COMMENT ON TABLE public.t%s IS ''table %s''; RESET SESSION AUTHORIZATION',
			CASE n % 10 WHEN 0 THEN 'shop_rt' ELSE 'shop' END, n, n, n) FROM generate_series(1, 10000) n
		\gexec`)
	text := w.sidecar()
	r := check.Must(sidecar.Standing(b.Context(), w.Open(b), "shop"))(b)
	for b.Loop() {
		c := w.copied()
		began := time.Now()
		check.Must(c.made(text, r, nil))(b)
		b.ReportMetric(time.Since(began).Seconds(), "s/apply")
		got := c.sidecar()
		began = time.Now()
		found := check.Must(r.Compare(strings.NewReader(text), strings.NewReader(got)))(b)
		b.ReportMetric(time.Since(began).Seconds(), "s/compare")
		if len(found) > 0 {
			b.Fatal(backup.Summary(found))
		}
	}
}
