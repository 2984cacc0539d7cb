package abuse_test

import (
	"sync/atomic"
	"testing"
	"time"
)

// manyRows compress to some 15 MB, which no socket's buffers hold.
const manyRows = `CREATE TABLE big AS SELECT string_agg(sha512((n || ' ' || m)::bytea)::text, '') AS text
	FROM generate_series(1, 1000) n, generate_series(1, 250) m GROUP BY n`

// stallDownloads begins forty downloads and reads none.
func stallDownloads(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "stalled", manyRows)
	name := must(m.backUp(t.Context(), d.ID))(t)
	const tries = 40
	const settling = 5 * time.Second // for each to be answered, unless it waits
	begun, refused := new(atomic.Int64), new(atomic.Int64)
	for range tries {
		go func() {
			file, err := m.Backups.Download(t.Context(), d.ID, name)
			switch {
			case err == nil:
				defer file.Close()
				begun.Add(1)
				<-t.Context().Done()
			case t.Context().Err() == nil:
				refused.Add(1)
			}
		}()
	}
	for deadline := time.Now().Add(settling); begun.Load()+refused.Load() < tries && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	// An account may have so many at a time.
	return func(t *testing.T) {
		const places = 4
		if begun, refused := begun.Load(), refused.Load(); begun != places || refused == 0 {
			t.Errorf("%d downloads have begun and %d were refused; an account has %d", begun, refused, places)
		}
	}
}
