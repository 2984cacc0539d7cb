package sidecar_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/artifact/sidecar"
)

// BenchmarkManyTables is about a managed database with 10,000 tables, each with an index, a sequence and a comment, one in ten
// of the runtime's.
func BenchmarkManyTables(b *testing.B) {
	w := newWorld(b)
	w.load(`SET SESSION AUTHORIZATION shop; GRANT CREATE ON SCHEMA public TO shop_rt; RESET SESSION AUTHORIZATION;
		SET max_parallel_workers_per_gather = 0;
		SELECT format('SET SESSION AUTHORIZATION %I; CREATE TABLE public.t%s (id serial PRIMARY KEY, note text CHECK (note <> ''''));
			COMMENT ON TABLE public.t%s IS ''table %s''; RESET SESSION AUTHORIZATION',
			CASE n % 10 WHEN 0 THEN 'shop_rt' ELSE 'shop' END, n, n, n) FROM generate_series(1, 10000) n
		\gexec`)
	text := w.sidecar()
	r := check.Must(sidecar.Standing(b.Context(), w.Open(b), "shop"))(b)
	b.Logf("%d bytes", len(text))
	for b.Loop() {
		b.StopTimer()
		c := w.copied()
		b.StartTimer()
		check.Must(c.made(text, r, nil))(b)
		b.StopTimer()
		got := c.sidecar()
		b.StartTimer()
		if found := check.Must(r.Compare(strings.NewReader(text), strings.NewReader(got)))(b); len(found) > 0 {
			b.Fatal(found[:min(len(found), 10)])
		}
		b.ReportMetric(float64(b.Elapsed().Milliseconds()), "ms")
	}
}
