package abuse_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sortPause is between two sorts, which take CPU time too.
const sortPause = time.Second

// muchToSort is more than a session may put on disk.
const muchToSort = `SELECT repeat(md5(n::text), 30) FROM generate_series(1, 1000000) n ORDER BY 1 LIMIT 1 OFFSET 900000`

// sortMuch sorts more than a session may put on disk, over and over.
func sortMuch(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "sorts")
	ended := new(atomic.Int64)
	db := m.at(t, d.Name, d.Username, d.Password)
	again(t, func(ctx context.Context) {
		_, err := db.ExecContext(ctx, muchToSort)
		if err != nil && strings.Contains(err.Error(), "temp_file_limit") {
			ended.Add(1)
			wait(ctx, sortPause)
		}
	})
	return func(t *testing.T) {
		if ended.Load() == 0 {
			t.Error("no sort was ended")
		}
	}
}
